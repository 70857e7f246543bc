// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// shown is what a view shows of the state of a set.
type shown struct {
	State, Reason          string
	Ready, Wanted, Attempt int
}

// stage is a state to which the set named train is brought.
type stage struct {
	seed func(k *kubectl)
	want shown
}

// edited replaces a part of a manifest.
func edited(manifest, old, new string) string {
	if !strings.Contains(manifest, old) {
		panic("the manifest has no " + old)
	}
	return strings.Replace(manifest, old, new, 1)
}

func applied(manifest string) func(*kubectl) {
	return func(k *kubectl) { k.okIn(manifest, "create", "-f", "-") }
}

var (
	readySet = func(k *kubectl) { k.awaitSummary("train", "restarts=0 | 1 Start, ready") }
	slowStop = `jobset-apiserver.io/kwok-stop-after: "5m"`
	queuedAs = func(text string) string {
		return edited(text, "  name: train\n", "  name: train\n  labels: {kueue.x-k8s.io/queue-name: tenants}\n")
	}
)

// stages takes the set through its states: on the real control plane, with simulated nodes.
var stages = map[string]stage{
	"queued by label": {applied(queuedAs(manifest("train", runOn, "suspend: true"))), shown{"Suspended", "Queued", 0, 2, 1}},
	"refused by a quota": {
		inTurn(withQuota("count/jobs.batch", "0"), applied(manifest("train", runOn))), shown{"Pending", "QuotaExceeded", 0, 2, 1},
	},
	"name taken": {
		inTurn(func(k *kubectl) { k.ok("create", "job", "train-workers-0", "--image=registry.example/other:v1") }, applied(manifest("train", runOn))),
		shown{"Starting", "NameConflict", 1, 2, 1},
	},
	"unschedulable": {
		applied(edited(manifest("train", runOn), "            containers:\n", "            nodeSelector: {example.com/none: such}\n            containers:\n")),
		shown{"Starting", "Unschedulable", 0, 2, 1},
	},
	"starting": {applied(manifest("train", startAfter)), shown{"Starting", "JobsNotReady", 0, 2, 1}},
	"starting in order": {
		applied(edited(manifest("train", startAfter, "startupPolicy: {startupPolicyOrder: InOrder}"), "  replicatedJobs:\n", "  replicatedJobs:\n  - name: first\n    replicas: 1\n    template: {spec: {template: {metadata: {annotations: {"+startAfter+"}}, spec: {containers: [{name: main, image: registry.example/trainer:v1}]}}}}\n")),
		shown{"Starting", "InOrderStartupPolicyInProgress", 0, 3, 1},
	},
	"running": {applied(manifest("train", runOn)), shown{"Running", "", 2, 2, 1}},
	"restarting": {
		inTurn(applied(manifest("train", runOn+"\n              "+slowStop)), readySet, func(k *kubectl) { k.pluginOK("restart", "train") }),
		shown{"Restarting", "RestartRequested", 0, 2, 2},
	},
	"retried": {
		inTurn(applied(manifest("train", startAfter)), func(k *kubectl) {
			k.awaitSummary("train", "restarts=0 | 1 Start")
			k.pluginOK("cancel", "train")
			k.pluginOK("retry", "train")
		}),
		shown{"Restarting", "RetryRequested", 0, 2, 2},
	},
	"cancelled": {
		inTurn(applied(manifest("train", runOn)), readySet, func(k *kubectl) { k.pluginOK("cancel", "train") }), shown{"Failed", "Cancelled", 0, 2, 1},
	},
	"suspended": {
		inTurn(applied(manifest("train", runOn)), readySet, func(k *kubectl) { k.pluginOK("suspend", "train") }), shown{"Suspended", "SuspendedJobs", 0, 2, 1},
	},
	"finished": {applied(manifest("train", runShort)), shown{"Completed", "AllJobsCompleted", 2, 2, 1}},
	"failed":   {applied(manifest("train", fail)), shown{"Failed", "FailedJobs", 0, 2, 1}},
	"Jobs gone by their TTL": {
		inTurn(applied(edited(manifest("train", runShort), "backoffLimit: 0\n", "backoffLimit: 0\n        ttlSecondsAfterFinished: 5\n")), func(k *kubectl) {
			k.wait("--for=condition=Completed", "jobset/train")
			k.wait("--for=delete", "job/train-workers-0", "job/train-workers-1")
			k.mentions("tree", "Removed")
			k.mentions("top", "2 removed")
		}),
		shown{"Completed", "AllJobsCompleted", 2, 2, 1},
	},
	"deleted and held by a finalizer": {
		inTurn(applied(manifest("train", runOn)), readySet, func(k *kubectl) {
			k.hold("jobset/train")
			k.ok("delete", "jobset", "train", "--wait=false")
		}),
		shown{"Terminating", "FinalizersRemain", 2, 2, 1},
	},
	"deleted after its Jobs": {
		inTurn(applied(manifest("train", runShort)), func(k *kubectl) {
			k.wait("--for=condition=Completed", "jobset/train")
			k.hold("job/train-workers-0")
			k.ok("delete", "jobset", "train", "--cascade=foreground", "--wait=false")
		}),
		shown{"Terminating", "DependentsRemain", 2, 2, 1},
	},
	"namespace ending": {
		inTurn(applied(manifest("train", runShort)), func(k *kubectl) {
			k.wait("--for=condition=Completed", "jobset/train")
			k.hold("jobset/train")
			k.ok("delete", "namespace", k.namespace, "--wait=false")
			k.eventually(func() string { return k.ok("get", "jobs", "-o", "name") })
			k.mentions("tree", "Removed")
		}),
		shown{"Terminating", "FinalizersRemain", 2, 2, 1},
	},
	"left to another controller": {applied(manifest("train", runOn, "managedBy: example.com/other")), shown{"Pending", "ManagedByOther", 0, 2, 1}},
}

// mentions waits until a command shows a word.
func (k *kubectl) mentions(command, word string) {
	k.Helper()
	k.eventually(func() string {
		if got := k.pluginOK(command, "train"); !strings.Contains(got, word) {
			return fmt.Sprintf("%q is missing in:\n%s", word, got)
		}
		return ""
	})
}

// looks are the views of a set.
var looks = map[string]func(k *kubectl) (shown, error){
	"wide": func(k *kubectl) (shown, error) {
		lines := strings.Split(k.ok("get", "jobset", "train", "-o", "wide"), "\n")
		cell := func(title string) string { // cells stand under their titles, and some are blank
			at := strings.Index(lines[0], title)
			return strings.TrimSpace(regexp.MustCompile(`^\S*`).FindString(lines[1][min(at, len(lines[1])):]))
		}
		out := shown{State: cell("PHASE"), Reason: cell("REASON")}
		_, err := fmt.Sscanf(cell("READY")+" "+cell("ATTEMPT"), "%d/%d %d/", &out.Ready, &out.Wanted, &out.Attempt)
		return out, err
	},
	"list": func(k *kubectl) (shown, error) {
		var data struct {
			Items []struct {
				Phase, Reason            string
				JobsReady, Jobs, Attempt int
			}
		}
		err := json.Unmarshal([]byte(k.pluginOK("list", "-o", "json")), &data)
		if err != nil || len(data.Items) != 1 {
			return shown{}, fmt.Errorf("%d sets are listed: %w", len(data.Items), err)
		}
		one := data.Items[0]
		return shown{one.Phase, one.Reason, one.JobsReady, one.Jobs, one.Attempt}, nil
	},
	"tree": asReport("tree"), "top": asReport("top"), "why": asReport("why"), "timeline": asReport("timeline"),
	// The conditions say the same as the phase that follows from them.
	"conditions": func(k *kubectl) (shown, error) {
		js := k.sets()["train"]
		if js == nil {
			return shown{}, fmt.Errorf("the set is gone")
		}
		s := helper.Summarize(js)
		for _, c := range js.Status.Conditions {
			phase := map[string]string{"Completed": "Completed", "Failed": "Failed", "Suspended": "Suspended", "RestartingJobSet": "Restarting"}[c.Type]
			if phase != "" && c.Status == "True" && s.Phase != phase && s.Phase != helper.PhaseTerminating {
				return shown{}, fmt.Errorf("the condition %s is True in the phase %s", c.Type, s.Phase)
			}
		}
		return shown{s.Phase, s.Reason, int(s.Jobs.Up), int(s.Jobs.Wanted), int(s.Attempt)}, nil
	},
}

// asReport reads what a command prints as data, and looks that its text for humans has the same words.
func asReport(command string) func(k *kubectl) (shown, error) {
	return func(k *kubectl) (shown, error) {
		var data struct {
			State, Reason                  string
			JobsReady, JobsWanted, Attempt int
		}
		if err := json.Unmarshal([]byte(k.pluginOK(command, "train", "-o", "json")), &data); err != nil {
			return shown{}, err
		}
		text := k.pluginOK(command, "train")
		for _, word := range []string{data.State, data.Reason} {
			if !strings.Contains(text, word) && data.State != helper.PhaseCompleted {
				return shown{}, fmt.Errorf("the text lacks %s:\n%s", word, text)
			}
		}
		return shown{data.State, data.Reason, data.JobsReady, data.JobsWanted, data.Attempt}, nil
	}
}

// TestViewsAgree takes sets through their states, and compares what all views show.
func TestViewsAgree(t *testing.T) {
	tier.OnRequest(t, "all views of many sets must agree at one moment")
	t.Parallel()
	var mu sync.Mutex
	rows, differences := map[string]string{}, 0
	var group errgroup.Group
	group.SetLimit(6) // they mostly wait
	for name, s := range stages {
		group.Go(func() error {
			t.Run(name, func(t *testing.T) {
				k := newKubectl(t)
				s.seed(k)
				last := map[string]string{}
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					rows[name] = fmt.Sprintf("%-28s %-12s %-31s %d/%d  attempt %d", name, s.want.State, s.want.Reason, s.want.Ready, s.want.Wanted, s.want.Attempt)
					for view, diff := range last {
						differences++
						rows[name] += fmt.Sprintf("\n  %s: %s", view, diff)
					}
				}()
				k.eventually(func() string {
					clear(last)
					for view, look := range looks {
						got, err := look(k)
						if diff := cmp.Diff(s.want, got); err != nil || diff != "" {
							last[view] = fmt.Sprintf("%v\n%s", err, diff)
						}
					}
					return strings.Join(slices.Collect(maps.Values(last)), "\n")
				})
			})
			return nil
		})
	}
	_ = group.Wait()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		lines = append(lines, rows[name])
	}
	t.Logf("%d states × %d views (%s), differences %d\n%s",
		len(rows), len(looks), strings.Join(slices.Sorted(maps.Keys(looks)), ", "), differences, strings.Join(lines, "\n"))
}

// TestMetricAgreesWithPhases compares the metric of sets by phase with the column PHASE of all sets.
func TestMetricAgreesWithPhases(t *testing.T) {
	tier.OnRequest(t, "all views of many sets must agree at one moment")
	k := newKubectl(t)
	k.okIn(manifest("runs", runOn)+"---\n"+manifest("fails", fail)+"---\n"+manifest("waits", runOn, "suspend: true"), "create", "-f", "-")
	port, err := os.ReadFile(filepath.Join(k.cluster.Dir, "ports", "controller-metrics"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Host, config.TLSClientConfig.Insecure = "https://127.0.0.1:"+strings.TrimSpace(string(port)), true // the certificate is self-signed
	config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData = "", nil
	k.eventually(func() string {
		want, all := map[string]string{}, k.ok("get", "jobsets", "-A", "-o", "wide")
		for _, phase := range append(slices.Clone(helper.Phases), unreadable.Phase) {
			want[phase] = fmt.Sprint(len(regexp.MustCompile(` `+phase+` +\d+/\d+ `).FindAllString(all, -1)))
		}
		code, body := framework.Get(t, rest.CopyConfig(config), "/metrics")
		if code != http.StatusOK {
			return fmt.Sprintf("status %d: %.200s", code, body)
		}
		got := map[string]string{}
		for _, found := range regexp.MustCompile(`(?m)^jobset_jobsets\{phase="(\w+)"\} (\d+)$`).FindAllStringSubmatch(body, -1) {
			got[found[1]] = found[2]
		}
		return cmp.Diff(want, got)
	})
}
