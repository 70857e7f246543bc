// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestConcurrentRestartsOfAnAttemptRestartOnce(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	config, err := k.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	uid := k.sets()["train"].UID

	const callers = 50
	answers, failures := make([]*batchv1alpha1.JobSetRestart, callers), make([]error, callers)
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		group.Go(func() {
			request := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{
				Reason:        fmt.Sprintf("caller %d", i),
				Preconditions: &batchv1alpha1.ActionPreconditions{UID: &uid, Attempt: ptr.To[int32](1)},
			}}
			<-start
			answers[i], failures[i] = client.JobsetV1alpha2().JobSets(k.namespace).Restart(t.Context(), "train", request, metav1.CreateOptions{})
		})
	}
	close(start)
	group.Wait()
	for i := range callers {
		if failures[i] != nil {
			t.Errorf("caller %d: %v", i, failures[i])
		} else if diff := cmp.Diff(answers[0].Status, answers[i].Status); diff != "" {
			t.Errorf("caller %d got another answer than the first one:\n%s", i, diff)
		}
	}
	set := k.sets()["train"]
	if set.Status.Restarts != 1 || len(set.Status.Attempts) != 2 {
		t.Errorf("%d callers gave %s", callers, summary(set))
	}
	if set.Status.Attempts[len(set.Status.Attempts)-1].Trigger != jobsetv1alpha2.TriggerRequested {
		t.Errorf("the last attempt was not requested: %s", summary(set))
	}
}

// failAttempt lets the pods of an attempt fail with an exit code once all Jobs of it were ready, and returns the nodes of the
// pods by their names. How long it takes until all are ready depends on how busy the machine is, so that pods which fail by
// themselves may fail before.
func (k *kubectl) failAttempt(set string, number, exitCode int) map[string]string {
	k.eventually(func() string {
		is := k.sets()[set]
		if attempts := is.Status.Attempts; len(attempts) != number || attempts[number-1].ReadyTime == nil {
			return summary(is)
		}
		return ""
	})
	selector := fmt.Sprintf("jobset.sigs.k8s.io/jobset-name=%s,jobset.sigs.k8s.io/restart-attempt=%d", set, number-1)
	nodes := map[string]string{}
	const names = `jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName} {end}`
	for _, pod := range strings.Fields(k.ok("get", "pods", "-l", selector, "-o", names)) {
		name, node, _ := strings.Cut(pod, "=")
		nodes[name] = node
	}
	k.ok("annotate", "pods", "--overwrite", "-l", selector, "jobset-apiserver.io/kwok-run-seconds=0",
		fmt.Sprintf("jobset-apiserver.io/kwok-exit-code=%d", exitCode), "jobset-apiserver.io/kwok-outcome=failed")
	return nodes
}

// TestHistoryOutlivesPods looks at what is known of failures when the Jobs and pods are gone.
func TestHistoryOutlivesPods(t *testing.T) {
	tier.OnRequest(t, "must see each pod while it lives")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "failurePolicy: {maxRestarts: 1}"), "create", "-f", "-")
	nodes := map[string]string{} // of all pods that ever were
	for _, attempt := range []int{1, 2} {
		maps.Copy(nodes, k.failAttempt("train", attempt, 42))
	}
	k.wait("--for=jsonpath={.status.terminalState}=Failed", "jobset/train")
	history := k.sets()["train"].Status.Attempts
	if len(history) != 2 {
		t.Fatalf("attempts: got %d, want 2", len(history))
	}
	for i, entry := range history {
		cause := entry.FirstCause
		if cause == nil {
			t.Errorf("attempt %d has no first cause", entry.Number)
			continue
		}
		if node, known := nodes[cause.Pod]; !known || node != cause.Node || !strings.HasPrefix(cause.Pod, cause.Job+"-0-") {
			t.Errorf("attempt %d: pod %q of job %q on node %q, the pods and nodes were %v", entry.Number, cause.Pod, cause.Job, cause.Node, nodes)
		}
		got := jobsetv1alpha2.FailureCause{Container: cause.Container, ExitCode: cause.ExitCode, Reason: cause.Reason}
		want := jobsetv1alpha2.FailureCause{Container: "main", ExitCode: ptr.To[int32](42), Reason: "Error"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cause of attempt %d (-want +got):\n%s", entry.Number, diff)
		}
		for what, at := range map[string]*metav1.MicroTime{
			"requestTime": entry.RequestTime, "createTime": entry.CreateTime, "readyTime": entry.ReadyTime, "endTime": entry.EndTime,
		} {
			if at == nil {
				t.Errorf("attempt %d has no %s", entry.Number, what)
			}
		}
		if i > 0 && entry.RequestTime.Before(history[i-1].EndTime) {
			t.Errorf("attempt %d began before the one before it had ended", entry.Number)
		}
	}
	if got := history[1].Trigger; got != jobsetv1alpha2.TriggerFailurePolicy {
		t.Errorf("trigger of attempt 2: got %s, want FailurePolicy", got)
	}

	k.ok("delete", "jobs", "--all", "--cascade=foreground")
	k.eventually(func() string {
		if left := k.ok("get", "jobs,pods", "-o", "name"); left != "" {
			return "left: " + left
		}
		return ""
	})
	if diff := cmp.Diff(history, k.sets()["train"].Status.Attempts); diff != "" {
		t.Errorf("the history has changed when the pods went (-before +after):\n%s", diff)
	}
	if events := k.ok("events", "--for", "jobset/train"); !strings.Contains(events, "exited with 42") {
		t.Errorf("no event names the exit code:\n%s", events)
	}
}

func TestPartialRestartKeepsOtherJobs(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	two := strings.Replace(manifest("train", runOn), "  replicatedJobs:\n", `  replicatedJobs:
  - name: leader
    template: {spec: {backoffLimit: 0, template: {metadata: {annotations: {`+runOn+`}}, spec: {containers: [{name: main, image: registry.example/trainer:v1}]}}}}
`, 1)
	k.okIn(two, "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	jobs := func() map[string]string {
		uids := map[string]string{}
		for _, job := range strings.Fields(k.ok("get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)) {
			name, uid, _ := strings.Cut(job, "=")
			uids[name] = uid
		}
		return uids
	}
	before := jobs()
	changed := func(want ...string) {
		t.Helper()
		k.eventually(func() string {
			now, got := jobs(), []string{}
			for _, name := range []string{"train-leader-0", "train-workers-0", "train-workers-1"} {
				if now[name] != before[name] && now[name] != "" {
					got = append(got, name)
				}
			}
			if len(now) != 3 {
				return fmt.Sprintf("jobs: %v", now)
			}
			return cmp.Diff(want, got)
		})
		before = jobs()
	}
	if got := k.answer(k.act("restart", "train", `"scope":"Job","replicatedJob":"workers","jobIndex":1`)).Message; got != "job 1 of replicatedJob workers was restarted as attempt 2" {
		t.Errorf("answer: %q", got)
	}
	k.eventually(func() string { return readyAttempt(k.sets()["train"], 2) })
	changed("train-workers-1")
	if got := k.answer(k.act("restart", "train", `"scope":"ReplicatedJob","replicatedJob":"workers"`)).Message; got != "replicatedJob workers was restarted as attempt 3" {
		t.Errorf("answer: %q", got)
	}
	k.eventually(func() string { return readyAttempt(k.sets()["train"], 3) })
	changed("train-workers-0", "train-workers-1")

	for spec, want := range map[string]string{
		`"scope":"Job","replicatedJob":"trainers","jobIndex":0`: `The JobSetRestart "train" is invalid: spec.replicatedJob: Invalid value: "trainers": must be the name of a replicatedJob of the JobSet: leader, workers` + "\n",
		`"scope":"Job","replicatedJob":"workers","jobIndex":2`:  `The JobSetRestart "train" is invalid: spec.jobIndex: Invalid value: 2: must be the index of a Job of replicatedJob workers, from 0 to 1` + "\n",
	} {
		if diff := cmp.Diff(want, k.act("restart", "train", spec).stderr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// readyAttempt says what is missing for the attempt of the number to run and be ready.
func readyAttempt(set *jobsetv1alpha2.JobSet, number int32) string {
	attempts := set.Status.Attempts
	if last := attempts[len(attempts)-1]; last.Number != number || last.ReadyTime == nil || last.EndTime != nil {
		return summary(set)
	}
	return ""
}

// TestRetryGrantsRestarts looks that the controller goes by what the server has granted.
func TestRetryGrantsRestarts(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(single("train", fail, "failurePolicy: {maxRestarts: 0}"), "create", "-f", "-")
	const verdict = "applying RestartJobSet failure policy action (first failed job: train-workers-0)"
	k.awaitSummary("train", "restarts=0 Failed/ReachedMaxRestarts | 1 Start → Failed")
	k.answer(k.operator("oncall").act("retry", "train", `"maxRestarts":1,"reason":"again","preconditions":{"attempt":1}`))
	k.awaitSummary("train", "restarts=2 Failed/ReachedMaxRestarts | 1 Start → Failed | 2 Retry (oncall: again) → Restarted | 3 FailurePolicy → Failed")
	set := k.sets()["train"]
	if got := set.Status.Attempts[2].Reason; got != verdict {
		t.Errorf("reason of attempt 3: got %q, want %q", got, verdict)
	}
	if set.Status.AddedRestarts != 1 || set.Status.RestartsCountTowardsMax != 1 {
		t.Errorf("restarts that were added: %d, that count: %d; want 1, 1", set.Status.AddedRestarts, set.Status.RestartsCountTowardsMax)
	}
	if row := k.ok("get", "jobset", "train", "-o", "wide"); !strings.Contains(row, " 3/3 ") {
		t.Errorf("attempt 3 of 3 is not in:\n%s", row)
	}
}
