// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func suspend(js *jobSet) { js.Spec.Suspend = ptr.To(true) }
func resume(js *jobSet)  { js.Spec.Suspend = ptr.To(false) }

func TestRow7_3_21_CreatedSuspended(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(suspend))
	e.awaitJobs(suspended, allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.awaitCounters("b{suspended 3} a{suspended 1}")
}

// directives are what a queueing system sets when it admits a set.
type directives struct {
	Labels, Annotations, NodeSelector map[string]string
	Tolerations                       []corev1.Toleration
}

func TestRow7_3_22_ResumedWithAnotherTemplate(t *testing.T) {
	want := directives{
		Labels:       map[string]string{"example.com/label": "l"},
		Annotations:  map[string]string{"example.com/annotation": "a"},
		NodeSelector: map[string]string{"example.com/pool": "fast"},
		Tolerations:  []corev1.Toleration{{Key: "example.com/taint", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
	e := newEnv(t, released)
	e.create(testJobSet(suspend))
	e.awaitJobs(suspended, allJobs...)
	e.update(func(js *jobSet) {
		for i := range js.Spec.ReplicatedJobs {
			pod := &js.Spec.ReplicatedJobs[i].Template.Spec.Template
			pod.Labels, pod.Annotations = want.Labels, want.Annotations
			pod.Spec.NodeSelector, pod.Spec.Tolerations = want.NodeSelector, want.Tolerations
		}
	})
	e.update(resume)
	e.awaitJobs(running, allJobs...)
	for name, job := range e.jobs() {
		pod := job.Spec.Template
		got := directives{
			Labels:       pick(pod.Labels, "example.com/label"),
			Annotations:  pick(pod.Annotations, "example.com/annotation"),
			NodeSelector: pod.Spec.NodeSelector, Tolerations: pod.Spec.Tolerations,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("template of Job %s (-want +got):\n%s", name, diff)
		}
		if got := pod.Labels[jobsetv1alpha2.JobSetNameKey]; got != setName {
			t.Errorf("Job %s lost the label of its set: %q", name, got)
		}
	}
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
	e.complete(allJobs...)
	e.awaitCompleted()
}

func pick(m map[string]string, key string) map[string]string { return map[string]string{key: m[key]} }

func TestRow7_3_23_SuspendedWhileItRuns(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	before := e.uids()
	e.ready(allJobs...)
	e.awaitCounters("b{ready 3, active 3} a{ready 1, active 1}")
	e.update(suspend)
	e.awaitJobs(suspended, allJobs...)
	e.stop(allJobs...)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.awaitCounters("b{suspended 3} a{suspended 1}")
	if diff := cmp.Diff(before, e.uids()); diff != "" {
		t.Errorf("the Jobs were replaced (-before +after):\n%s", diff)
	}
	e.update(resume)
	e.awaitJobs(running, allJobs...)
	e.ready(allJobs...)
	e.awaitCounters("b{ready 3, active 3} a{ready 1, active 1}")
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
}

// uids are the UIDs of the Jobs, by name.
func (e *env) uids() map[string]types.UID {
	e.Helper()
	uids := map[string]types.UID{}
	for name, job := range e.jobs() {
		uids[name] = job.UID
	}
	return uids
}
