// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const examplesDir = "artifacts/examples"

// examplesElsewhere are the examples that simulated nodes cannot run, with the test that runs them and its file.
var examplesElsewhere = map[string]struct{ file, text string }{
	"all-reduce.yaml":                        {"test/nodes/allreduce_test.go", "func TestAllReduceSurvivesKills("},
	"in-place-restart/admission-policy.yaml": {"test/nodes/inplace_policy_test.go", "func TestPolicyOfTheAgent("},
	"in-place-restart/service-account.yaml":  {"test/nodes/inplace_policy_test.go", "func TestPolicyOfTheAgent("},
}

// examplePromises check what the comment of an example promises and its commands do not show.
var examplePromises = map[string]func(*kubectl){
	"simple.yaml": func(k *kubectl) { k.succeeded("simple", 2, 4) },
	"depends-on.yaml": func(k *kubectl) {
		prepare, driver, workers := k.jobTimes("depends-on-prepare-0"), k.jobTimes("depends-on-driver-0"), k.jobTimes("depends-on-workers-0")
		if driver.began.Before(prepare.ended) || workers.began.Before(driver.began) {
			k.Errorf("prepare %v, driver %v, workers %v", prepare, driver, workers)
		}
	},
	"failure-policy.yaml": func(k *kubectl) {
		if got, want := k.field("jobset/failure-policy", "{.status.restarts} {.status.attempts[*].outcome}"), "1 Restarted Failed"; got != want {
			k.Errorf("restarts and outcomes: %s, want %s", got, want)
		}
	},
	"suspended.yaml": func(k *kubectl) { k.succeeded("suspended", 2, 4) },
	"training.yaml": func(k *kubectl) {
		k.succeeded("training", 3, 9)
		const path = `{.items[*].metadata.annotations.jobset\.sigs\.k8s\.io/coordinator}`
		want := strings.TrimSpace(strings.Repeat("training-launcher-0-0.training ", 9))
		if got := k.ok("get", "pods", "-o", "jsonpath="+path); got != want {
			k.Errorf("coordinator of the pods: %q, want %q", got, want)
		}
	},
	"ttl.yaml": func(k *kubectl) {
		k.eventually(func() string {
			if left := k.ok("get", "jobs,services", "-o", "name", "-l", "jobset.sigs.k8s.io/jobset-name=ttl"); left != "" {
				return "still there: " + left
			}
			return ""
		})
	},
	"sequential-training.yaml": func(k *kubectl) {
		if got := k.field("jobset/experiment-1", "{.status.terminalState}"); got != "Completed" {
			k.Errorf("the JobSet of the step is %q", got)
		}
	},
	"sequential-nightly.yaml": func(k *kubectl) {
		for _, verb := range []string{"create", "get", "patch"} {
			k.ok("auth", "can-i", verb, "sequentialjobs.batch.jobset-apiserver.io", "--as=system:serviceaccount:"+k.namespace+":nightly")
		}
	},
	"pod-groups/gang.yaml":              gangIsLabeled,
	"pod-groups/bare-pods.yaml":         pairIsShown,
	"leaderworkerset/simple.yaml":       groupsRun("simple-groups", 3, 4),
	"leaderworkerset/autoscaling.yaml":  groupsRun("simple-groups", 5, 4),
	"leaderworkerset/vllm.yaml":         groupsRun("vllm", 2, 2),
	"leaderworkerset/sglang.yaml":       groupsRun("sglang", 1, 2),
	"leaderworkerset/tensorrt-llm.yaml": groupsRun("tensorrt-llm", 1, 2),
	"leaderworkerset/llama-cpp.yaml":    groupsRun("llama-cpp", 1, 5),
	"disaggregatedset/simple.yaml":      func(k *kubectl) { k.untilRolesOf("simple", "prefill 4 4 4, decode 2 2 2") },
	"disaggregatedset/vllm.yaml":        func(k *kubectl) { k.untilRolesOf("vllm", "prefill 4 4 4, decode 2 2 2") },
	"disaggregatedset/autoscaling.yaml": func(k *kubectl) { k.untilRolesOf("scaled", "prefill 2 2 2, decode 2 2 2") },
}

// TestExamples runs the commands in the comment of each example, all of which must succeed, and looks for what the comment promises.
func TestExamples(t *testing.T) {
	tier.OnRequest(t, "applies all examples, in minutes")
	t.Parallel()
	ran := 0
	root := filepath.Join(shared.Root, examplesDir)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		comment, commands := runbook.Comment(t, path)
		if elsewhere, found := examplesElsewhere[name]; found {
			content, err := os.ReadFile(filepath.Join(shared.Root, elsewhere.file))
			if err != nil || !strings.Contains(string(content), elsewhere.text) {
				t.Errorf("%s is run by %s, which lacks %q (%v)", name, elsewhere.file, elsewhere.text, err)
			}
			return nil
		}
		ran++
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			t.Parallel()
			runExample(t, name, comment, commands)
		})
		return nil
	})
	if err != nil || ran < 22 {
		t.Errorf("ran %d examples, want at least 22 (%v)", ran, err)
	}
}

func runExample(t *testing.T, name, comment string, commands []string) {
	t.Helper()
	script := strings.Join(commands, "\n")
	if !strings.Contains(script, examplesDir+"/"+name) || !strings.Contains(script, "kubectl wait ") {
		t.Fatalf("the comment of %s must have the commands that apply it and wait for its result, indented by three spaces; it has %q",
			name, script)
	}
	c := shared
	if strings.HasPrefix(comment, "Feature gate") {
		c = gated.use(t)
	}
	k := newKubectlFor(t, c)
	k.admitsPods()
	shell := k.shell()
	for _, command := range commands {
		printed, code := shell.Run(t, stepLimit, command)
		t.Logf("$ %s\n%s", command, printed)
		if code != 0 {
			t.Fatalf("%s: exit code %d of: %s", name, code, command)
		}
		if strings.Contains(printed, "Warning:") {
			t.Errorf("%s: a warning", name)
		}
	}
	if check := examplePromises[name]; check != nil {
		check(k)
	}
}

// succeeded looks at the Jobs of a set, and at their pods.
func (k *kubectl) succeeded(set string, jobs, pods int) {
	k.Helper()
	selector := "jobset.sigs.k8s.io/jobset-name=" + set
	for kind, want := range map[string]int{"jobs": jobs, "pods": pods} {
		if got := strings.Count(k.ok("get", kind, "-o", "name", "-l", selector), "\n"); got != want {
			k.Errorf("%s has %d %s, want %d", set, got, kind, want)
		}
	}
	if got := k.ok("get", "pods", "-o", "name", "-l", selector, "--field-selector=status.phase!=Succeeded"); got != "" {
		k.Errorf("pods that have not succeeded: %s", got)
	}
}

// jobTimes are the start and the end of a Job that has succeeded.
type jobTimes struct{ began, ended time.Time }

func (k *kubectl) jobTimes(name string) jobTimes {
	k.Helper()
	var job batchv1.Job
	err := json.Unmarshal([]byte(k.ok("get", "job", name, "-o", "json")), &job)
	began, ended := job.Status.StartTime, job.Status.CompletionTime
	if err != nil || began == nil || ended == nil {
		k.Fatalf("job %s: %v, %+v", name, err, job.Status)
	}
	return jobTimes{began.Time, ended.Time}
}

// groupsRun waits until all groups of a LeaderWorkerSet have all of their pods.
func groupsRun(set string, groups, size int) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		k.eventually(func() string {
			ready := k.field("lws/"+set, "{.status.readyReplicas}")
			pods := k.ok("get", "pods", "-o", "name", "-l", "leaderworkerset.sigs.k8s.io/name="+set, "--field-selector=status.phase=Running")
			running := strings.Count(pods, "\n")
			if ready != fmt.Sprint(groups) || running != groups*size {
				return fmt.Sprintf("%s groups are ready and %d pods run, want %d and %d", ready, running, groups, groups*size)
			}
			return ""
		})
	}
}
