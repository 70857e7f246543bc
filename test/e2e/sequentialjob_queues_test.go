// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// inTeam are the metadata of a sequence in the queue team.
const inTeam = `%s, labels: {kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/priority-class: high, kueue.x-k8s.io/max-exec-time-seconds: "600"}`

// withKueue installs the kinds of Kueue for the time of the test, and lets the stand-in decide in its namespace.
func withKueue(k *kubectl) *kueue.Standin {
	k.Helper()
	config, err := k.cluster.Config()
	if err != nil {
		k.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		k.Fatal(err)
	}
	// It is removed also when it was not installed in time, since other tests define these kinds in their own way.
	k.Cleanup(func() {
		if err := kueue.Uninstall(context.WithoutCancel(k.Context()), client); err != nil {
			k.Error(err)
		}
	})
	if err := kueue.Install(k.Context(), client); err != nil {
		k.Fatal(err)
	}
	s := &kueue.Standin{Client: client, Namespace: k.namespace}
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx, k.Logf) }()
	k.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

// shows waits until a condition of a sequence has the status and the reason, with words in its message.
func (k *kubectl) shows(name, conditionType, status, reason string, words ...string) {
	k.Helper()
	k.eventually(func() string {
		var seen []string
		for _, c := range k.sequenceNamed(name).Status.Conditions {
			seen = append(seen, fmt.Sprintf("%s=%s (%s) %s", c.Type, c.Status, c.Reason, c.Message))
			if c.Type != conditionType || string(c.Status) != status || c.Reason != reason {
				continue
			}
			missing := ""
			for _, word := range words {
				if !strings.Contains(c.Message, word) {
					missing = word
				}
			}
			if missing == "" {
				return ""
			}
		}
		return fmt.Sprintf("no %s=%s (%s) with %q in:\n%s", conditionType, status, reason, words, strings.Join(seen, "\n"))
	})
}

func (k *kubectl) inPhase(name string, want batchv1alpha1.SequentialJobPhase) {
	k.Helper()
	k.eventually(func() string {
		if got := k.sequenceNamed(name).Status.Phase; got != want {
			return fmt.Sprintf("phase %s, want %s", got, want)
		}
		return ""
	})
}

// workloadOf returns the name of the Workload of an object, once it has one.
func (k *kubectl) workloadOf(object string) (name string) {
	k.Helper()
	uid := k.field(object, "{.metadata.uid}")
	k.eventually(func() string {
		name = k.ok("get", "workloads", "-l", "kueue.x-k8s.io/job-uid="+uid, "-o", "jsonpath={.items[*].metadata.name}")
		if name == "" {
			return object + " has no Workload"
		}
		return ""
	})
	return name
}

func (k *kubectl) suspended(job string, want bool) {
	k.Helper()
	k.eventually(func() string {
		r := k.run("", "get", "job", job, "-o", "jsonpath={.spec.suspend}") // which the controller may not have created yet
		if got := r.stdout == "true"; r.code != 0 || got != want {
			return fmt.Sprintf("spec.suspend of job %s is %q %s", job, r.stdout, r.stderr)
		}
		return ""
	})
}

func TestQueueWithoutKueue(t *testing.T) {
	tier.OnRequest(t, "installs the definitions of Kueue for the whole cluster")
	k := newKubectl(t)
	k.sequence(fmt.Sprintf(inTeam, "etl"), atOnce)
	k.shows("etl", batchv1alpha1.ConditionResourcesUnavailable, "True", batchv1alpha1.ReasonQueueUnavailable, "kueue.x-k8s.io/queue-name", "job etl-0", "install Kueue")
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "in queue team", "does not serve")
	k.suspended("etl-0", true)
	k.ok("label", "sequentialjob/etl", "job/etl-0", "kueue.x-k8s.io/queue-name-")
	k.inPhase("etl", batchv1alpha1.PhaseCompleted)
}

func TestSequenceInQueue(t *testing.T) {
	tier.OnRequest(t, "installs the definitions of Kueue for the whole cluster")
	k := newKubectl(t)
	s := withKueue(k)
	s.Hold("insufficient quota for cpu in flavor default")
	k.sequence(fmt.Sprintf(inTeam, "etl"), steered)

	// Waiting is shown in the words of Kueue, and time in the queue does not count.
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "Job 0 waits for quota in queue team", "insufficient quota for cpu")
	k.inPhase("etl", batchv1alpha1.PhaseWaiting)
	if got := k.field("job/etl-0", "{.metadata.labels}"); !strings.Contains(got, `"kueue.x-k8s.io/priority-class":"high"`) || !strings.Contains(got, `"kueue.x-k8s.io/max-exec-time-seconds":"600"`) {
		t.Errorf("labels of the Job: %s", got)
	}
	s.Admit("")
	k.inPhase("etl", batchv1alpha1.PhaseRunning)
	k.endStep("etl", 0, "success")

	// The second step is preempted, waits, and goes on.
	k.eventually(func() string { return k.run("", "get", "job", "etl-1").stderr })
	second := k.workloadOf("job/etl-1")
	k.suspended("etl-1", false)
	s.Evict(second, "Preempted")
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "Job 1 waits for quota", "no room")
	s.Admit("")
	k.suspended("etl-1", false)
	k.inPhase("etl", batchv1alpha1.PhaseRunning)

	// Suspending the sequence takes the step out of its queue, and resuming puts it back. Kueue does the rest.
	k.ok("patch", "sequentialjob", "etl", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.suspended("etl-1", true)
	k.shows("etl", batchv1alpha1.ConditionSuspended, "True", batchv1alpha1.ReasonSuspended)
	if got := k.field("workload/"+second, "{.spec.active} {.metadata.annotations}"); got != `false {"batch.jobset-apiserver.io/deactivated-by":"etl"}` {
		t.Errorf("active and annotations of the Workload: %s", got)
	}
	s.Hold("others came first")
	k.ok("patch", "sequentialjob", "etl", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "others came first")
	if got := k.field("workload/"+second, "{.spec.active}{.metadata.annotations}"); got != "true" {
		t.Errorf("active and annotations of the Workload: %s", got)
	}
	k.suspended("etl-1", true)
	s.Admit("")
	k.endStep("etl", 1, "success")
	k.endStep("etl", 2, "success")
	k.inPhase("etl", batchv1alpha1.PhaseCompleted)
	if got := k.sequenceNamed("etl").Status.Steps[1].Attempts; got != 1 {
		t.Errorf("the step that was preempted and suspended has %d attempts", got)
	}
}

// TestSomebodyElsesDeactivationStays has an administrator take a step out of its queue.
func TestSomebodyElsesDeactivationStays(t *testing.T) {
	tier.OnRequest(t, "installs the definitions of Kueue for the whole cluster")
	k := newKubectl(t)
	s := withKueue(k)
	s.Hold("no room")
	k.sequence(fmt.Sprintf(inTeam, "etl"), atOnce)
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "no room")
	w := k.workloadOf("job/etl-0")
	k.ok("patch", "workload", w, "--type=merge", "-p", `{"spec":{"active":false}}`)
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, w+" is deactivated")
	for _, suspend := range []string{"true", "false"} {
		k.ok("patch", "sequentialjob", "etl", "--type=merge", "-p", `{"spec":{"suspend":`+suspend+`}}`)
		k.wait("sequentialjob/etl", "--for=jsonpath={.status.observedGeneration}="+k.field("sequentialjob/etl", "{.metadata.generation}"))
	}
	k.shows("etl", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, w+" is deactivated")
	if got := k.field("workload/"+w, "{.spec.active}"); got != "false" {
		t.Errorf("active is %s", got)
	}
	s.Admit("")
	k.ok("patch", "workload", w, "--type=merge", "-p", `{"spec":{"active":true}}`)
	k.inPhase("etl", batchv1alpha1.PhaseCompleted)
}

const queuedJobSetStep = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: train, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  steps:
  - name: train
    jobSet:
      spec:
        replicatedJobs:
        - name: workers
          replicas: 2
          template:
            spec:
              template:
                metadata: {annotations: {%s}}
                spec:
                  restartPolicy: Never
                  containers: [{name: main, image: busybox}]
`

func TestJobSetStepInQueue(t *testing.T) {
	tier.OnRequest(t, "installs the definitions of Kueue for the whole cluster")
	k := newKubectl(t)
	s := withKueue(k)
	s.Hold("no room")
	k.okIn(fmt.Sprintf(queuedJobSetStep, steered), "create", "-f", "-")
	k.shows("train", batchv1alpha1.ConditionProgressing, "False", batchv1alpha1.ReasonWaitingForQuota, "Job 0 waits for quota in queue team", "no room")
	s.Admit("")
	k.inPhase("train", batchv1alpha1.PhaseRunning)
	k.ok("patch", "sequentialjob", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	k.shows("train", batchv1alpha1.ConditionSuspended, "True", batchv1alpha1.ReasonSuspended)
	if got := k.field("jobset/train-0", "{.spec.suspend}"); got != "true" {
		t.Errorf("spec.suspend of the JobSet is %q", got)
	}
	k.ok("patch", "sequentialjob", "train", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.endStep("train", 0, "success")
	k.inPhase("train", batchv1alpha1.PhaseCompleted)
}
