// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"errors"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// between is a sequence of a JobSet and a container. The JobSet has completed, and the container is next.
func between(sj *batchv1alpha1.SequentialJob) {
	sj.Spec = batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{
		{Name: "a", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: jobsetv1alpha2.JobSetSpec{
			ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To[int32](2)}},
		}}},
		{Name: "b", Container: &corev1.Container{Name: "b", Image: "b"}},
	}}
	sj.Finalizers = []string{batchv1alpha1.SequentialJobFinalizer}
	sj.Status.ObservedGeneration = 1
	sj.Status.Progress = batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}}
	sj.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{
		{Name: "a", Kind: batchv1alpha1.StepKindJobSet, ChildName: "etl-0", ChildUID: "uid-0", State: batchv1alpha1.StepSucceeded, Attempts: 1},
		{Name: "b", Kind: batchv1alpha1.StepKindJob, ChildName: "etl-1", State: batchv1alpha1.StepStarting, Attempts: 1},
	}
}

func labelsOfStep(sj *batchv1alpha1.SequentialJob, index, attempt string) map[string]string {
	return map[string]string{batchv1alpha1.SequentialJobUIDKey: string(sj.UID), batchv1alpha1.StepIndexKey: index, batchv1alpha1.StepAttemptKey: attempt}
}

func podOfStep(sj *batchv1alpha1.SequentialJob, name string, phase corev1.PodPhase, index, attempt string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labelsOfStep(sj, index, attempt), DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"x"}},
		Spec:       corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: phase},
	}
}

// jobOfSet is a Job of the JobSet of the first step.
func jobOfSet(sj *batchv1alpha1.SequentialJob, change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0-w-1", Namespace: "ns", UID: "uid-w"}}
	job.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: "etl-0"}
	job.Spec.Template.Labels = labelsOfStep(sj, "0", "1")
	for _, c := range change {
		c(job)
	}
	return job
}

func TestStepWaitsForEarlierPods(t *testing.T) {
	sj, other := newSequence(between), newSequence()
	other.UID = "other"
	ended := func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	for name, tc := range map[string]struct {
		there []runtime.Object
		// want is a part of the message; empty if the step begins.
		want string
	}{
		"nothing is left":                         {},
		"a pod that stops":                        {there: []runtime.Object{podOfStep(sj, "etl-0-w-1-0-x", corev1.PodRunning, "0", "1")}, want: "pod etl-0-w-1-0-x on node n1"},
		"a pod that has ended":                    {there: []runtime.Object{podOfStep(sj, "etl-0-w-1-0-x", corev1.PodSucceeded, "0", "1")}},
		"a pod of an earlier attempt":             {there: []runtime.Object{podOfStep(sj, "etl-1-x", corev1.PodPending, "1", "0")}, want: "pod etl-1-x"},
		"a pod of the attempt that begins":        {there: []runtime.Object{podOfStep(sj, "etl-1-x", corev1.PodRunning, "1", "1")}},
		"a pod of another sequence":               {there: []runtime.Object{podOfStep(other, "x", corev1.PodRunning, "0", "1")}},
		"a Job that has not created its pods yet": {there: []runtime.Object{jobOfSet(sj)}, want: "job etl-0-w-1"},
		"a Job that has ended":                    {there: []runtime.Object{jobOfSet(sj, ended)}},
		"a suspended Job without pods":            {there: []runtime.Object{jobOfSet(sj, func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })}},
		"a suspended Job with a pod": {
			there: []runtime.Object{jobOfSet(sj, func(job *batchv1.Job) { job.Spec.Suspend, job.Status.Terminating = ptr.To(true), ptr.To[int32](1) })},
			want:  "job etl-0-w-1",
		},
		"a Job of somebody else": {there: []runtime.Object{jobOfSet(sj, func(job *batchv1.Job) { job.Spec.Template.Labels = nil })}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sj.DeepCopy(), tc.there...)
			if err := r.syncs(t, 2); err != nil {
				t.Fatal(err)
			}
			created := slices.Contains(r.written(), "create jobs etl-1")
			if created != (tc.want == "") {
				t.Errorf("the next step has begun: %t", created)
			}
			c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionProgressing)
			if tc.want != "" && (c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, tc.want)) {
				t.Errorf("the condition does not say why it waits: %v", c)
			}
		})
	}
}

// TestStepWaitsForWhatCannotBeRead checks that the next step does not begin while it is not known what still runs.
func TestStepWaitsForWhatCannotBeRead(t *testing.T) {
	for _, resource := range []string{"pods", "jobs"} {
		sj := newSequence(between, func(sj *batchv1alpha1.SequentialJob) { sj.Status.Steps[1].StartTime = &metav1.Time{} })
		r := newRig(t, sj)
		fails := true
		r.kube.PrependReactor("list", resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return fails, nil, errors.New("no answer") })
		fails = false
		r.cached(t)
		fails = true
		due, err := r.Sync(t.Context(), key)
		if err != nil || due.Deadline == 0 {
			t.Errorf("%s: due %v, error %v", resource, due, err)
		}
		fails = false
		c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionProgressing)
		if c == nil || !strings.Contains(c.Message, "no answer") {
			t.Errorf("%s: the condition does not say why it waits: %v", resource, c)
		}
		if err := r.syncs(t, 1); err != nil || !slices.Contains(r.written(), "create jobs etl-1") {
			t.Errorf("%s: the next step has not begun: %v", resource, err)
		}
	}
}

// TestFirstStepAsksNothing checks that no request is made where nothing can be left.
func TestFirstStepAsksNothing(t *testing.T) {
	r := newRig(t, newSequence())
	r.kube.PrependReactor("list", "pods", func(clientgotesting.Action) (bool, runtime.Object, error) {
		t.Error("pods are listed")
		return true, &corev1.PodList{}, nil
	})
	if err := r.syncs(t, 2); err != nil || !slices.Contains(r.written(), "create jobs etl-0") {
		t.Errorf("the first step has not begun: %v", err)
	}
}
