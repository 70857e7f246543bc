// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// A fault is something that keeps a set from running, made on the real control plane, and what `kubectl jobset why` must
// inTurn name first.
type fault struct {
	seed func(k *kubectl)
	want why.Cause
	// words must all be in the sentence: who, what, how much.
	words []string
	// alone is set for a fault that would disturb other tests that run at the same time.
	alone bool
}

func TestWhyNamesTheCauseFirst(t *testing.T) {
	tier.OnRequest(t, "a hundred faults, some of which break what other tests share")
	var mu sync.Mutex
	named, all := 0, 0
	seen := map[why.Cause]bool{}
	check := func(t *testing.T, f fault) {
		mu.Lock()
		all++
		mu.Unlock()
		k := newKubectl(t)
		f.seed(k)
		k.whyFirst(f.want, f.words...)
		mu.Lock()
		defer mu.Unlock()
		named++
		seen[f.want] = true
	}
	installKueue(t)
	faults := allFaults()
	t.Run("beside", func(t *testing.T) {
		// They mostly wait, so that more of them at a time than there are processors are no burden.
		var group errgroup.Group
		group.SetLimit(6)
		for name, f := range faults {
			if !f.alone {
				group.Go(func() error {
					t.Run(name, func(t *testing.T) { check(t, f) })
					return nil
				})
			}
		}
		_ = group.Wait()
	})
	t.Run("alone", func(t *testing.T) {
		for name, f := range faults {
			if f.alone {
				t.Run(name, func(t *testing.T) { check(t, f) })
			}
		}
	})
	t.Logf("score: %d of %d seeded faults named first, of %d causes", named, all, len(seen))
}

// allFaults gathers the tables of the other files.
func allFaults() map[string]fault {
	all := map[string]fault{}
	for _, table := range []map[string]fault{decisionFaults, queueFaults, creationFaults, schedulingFaults, podFaults, failureFaults, controlFaults} {
		for name, f := range table {
			all[name] = f
		}
	}
	return all
}

// whyFirst waits until the diagnosis of the set named train begins with the cause.
func (k *kubectl) whyFirst(want why.Cause, words ...string) {
	k.Helper()
	k.eventually(func() string {
		first := k.why("train").Findings[0]
		if first.Cause != want {
			return fmt.Sprintf("the first cause is %s, want %s:\n%+v", first.Cause, want, first)
		}
		for _, word := range words {
			if !strings.Contains(first.Summary, word) {
				return fmt.Sprintf("the sentence does not contain %q:\n%+v", word, first)
			}
		}
		if len(first.Evidence) == 0 && want != why.Running || len(first.Commands) == 0 {
			return fmt.Sprintf("no evidence or no commands:\n%+v", first)
		}
		return ""
	})
	k.Log("\n" + k.plugin("why", "train").stdout)
}

// why is the diagnosis of a set as data.
func (k *kubectl) why(name string) why.Report {
	k.Helper()
	r := k.plugin("why", name, "-o", "json")
	var report why.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Findings) == 0 {
		k.Fatalf("kubectl jobset why %s: %v\n%s%s", name, err, r.stdout, r.stderr)
	}
	return report
}

// calmSet is a JobSet of two Jobs of one pod each that run until a test ends them, with changes.
func calmSet(changes ...func(*jobsetv1alpha2.JobSet)) string {
	js := builders.JobSet("train", builders.WithJobs("workers", 2, 1, runningOn))
	js.Namespace = ""
	for _, change := range changes {
		change(js)
	}
	content, err := json.Marshal(js)
	if err != nil {
		panic(err)
	}
	return string(content)
}

// runningOn makes the pods of a replicatedJob run on, and their first failure that of the Job.
func runningOn(rj *jobsetv1alpha2.ReplicatedJob) {
	rj.Template.Spec.BackoffLimit = ptr.To(int32(0))
	rj.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	annotated("jobset-apiserver.io/kwok-outcome", "running")(rj)
}

// annotated adds an annotation of docs/local-cluster.md to the pods.
func annotated(key, value string) func(*jobsetv1alpha2.ReplicatedJob) {
	return func(rj *jobsetv1alpha2.ReplicatedJob) {
		template := &rj.Template.Spec.Template
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations[key] = value
	}
}

// neverStarting keeps pods from starting after they were scheduled.
var neverStarting = annotated("jobset-apiserver.io/kwok-start-after", "30m")

// everyJob applies changes to all replicatedJobs.
func everyJob(changes ...func(*jobsetv1alpha2.ReplicatedJob)) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		for i := range js.Spec.ReplicatedJobs {
			for _, change := range changes {
				change(&js.Spec.ReplicatedJobs[i])
			}
		}
	}
}

// podSpecs applies a change to the pods of all replicatedJobs.
func podSpecs(change func(*corev1.PodSpec)) func(*jobsetv1alpha2.JobSet) {
	return everyJob(func(rj *jobsetv1alpha2.ReplicatedJob) { change(&rj.Template.Spec.Template.Spec) })
}

// jobSpecs applies a change to the Jobs of all replicatedJobs.
func jobSpecs(change func(*batchv1.JobSpec)) func(*jobsetv1alpha2.JobSet) {
	return everyJob(func(rj *jobsetv1alpha2.ReplicatedJob) { change(&rj.Template.Spec) })
}

// makes creates the set.
func makes(changes ...func(*jobsetv1alpha2.JobSet)) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		k.okIn(calmSet(changes...), "create", "-f", "-")
	}
}

// becomesReady makes the set and waits until its two Jobs are ready.
func becomesReady(changes ...func(*jobsetv1alpha2.JobSet)) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		makes(changes...)(k)
		k.wait("--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2", "jobset/train")
	}
}

// inTurn does one thing after the other.
func inTurn(steps ...func(*kubectl)) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		for _, step := range steps {
			step(k)
		}
	}
}

// podNamed waits for a pod of the Job and returns its name.
func (k *kubectl) podNamed(job string) string {
	k.Helper()
	var name string
	k.eventually(func() string {
		names := strings.Fields(k.ok("get", "pods", "-l", "batch.kubernetes.io/job-name="+job, "-o", "jsonpath={.items[*].metadata.name}"))
		if len(names) == 0 {
			return "no pod of the job " + job
		}
		slices.Sort(names)
		name = names[0]
		return ""
	})
	return name
}

// podOnNode waits until the pod has a node.
func (k *kubectl) podOnNode(job string) string {
	k.Helper()
	name := k.podNamed(job)
	k.wait("--for=condition=PodScheduled", "pod/"+name)
	return name
}

// status writes a part of the status of a pod, as a kubelet would.
func (k *kubectl) podStatus(pod, status string) {
	k.Helper()
	k.ok("patch", "pod", pod, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
}
