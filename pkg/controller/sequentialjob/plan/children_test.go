// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// stepsOf returns a sequence of one step of a kind.
func stepsOf(kind string) batchv1alpha1.SequentialJobSpec {
	step := batchv1alpha1.SequentialJobStep{Name: "only"}
	ttl := ptr.To[int32](60)
	switch kind {
	case "container":
		step.Container = &corev1.Container{Name: "main", Image: "a"}
	case "job":
		step.Job = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{TTLSecondsAfterFinished: ttl}}
		step.Job.Labels = map[string]string{"team": "x"}
		step.Job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "a"}}
	case "jobSet":
		step.JobSet = &batchv1alpha1.JobSetTemplateSpec{Spec: jobsetv1alpha2.JobSetSpec{TTLSecondsAfterFinished: ttl}}
		step.JobSet.Annotations = map[string]string{"note": "x"}
		step.JobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "a"}, {Name: "b"}}
	}
	return batchv1alpha1.SequentialJobSpec{
		Steps: []batchv1alpha1.SequentialJobStep{step}, UpdateStrategy: &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateContinue},
	}
}

func TestChildren(t *testing.T) {
	labels := map[string]string{
		"batch.jobset-apiserver.io/sequentialjob-name": "etl", "batch.jobset-apiserver.io/sequentialjob-uid": "uid",
		"batch.jobset-apiserver.io/step-index": "0", "batch.jobset-apiserver.io/step-name": "only", "batch.jobset-apiserver.io/step-attempt": "3",
		"app.kubernetes.io/part-of": "etl",
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Name: "etl", UID: "uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	for _, kind := range []string{"container", "job", "jobSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) {
				sj.Spec = stepsOf(kind)
				sj.Spec.BackoffLimit = ptr.To[int32](2)
				sj.Spec.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
			})
			job, js := NewChild(w.sj, helper.Steps(&w.sj.Spec)[0], 3)
			if js != nil {
				diff(t, "the name", "etl-0", js.Name)
				diff(t, "the labels", labels, js.Labels)
				diff(t, "the annotations", map[string]string{"note": "x"}, js.Annotations)
				diff(t, "the owner", owner, js.OwnerReferences)
				diff(t, "the time to live", (*int32)(nil), js.Spec.TTLSecondsAfterFinished)
				for _, rj := range js.Spec.ReplicatedJobs {
					diff(t, "the labels of pods", labels, rj.Template.Spec.Template.Labels)
				}
				return
			}
			diff(t, "the name", "etl-0", job.Name)
			diff(t, "the owner", owner, job.OwnerReferences)
			diff(t, "the time to live", (*int32)(nil), job.Spec.TTLSecondsAfterFinished)
			diff(t, "suspend", (*bool)(nil), job.Spec.Suspend)
			diff(t, "the containers", []corev1.Container{{Name: "main", Image: "a"}}, job.Spec.Template.Spec.Containers)
			wantLabels, wantPods, wantLimit := hostplan.Merged(labels), hostplan.Merged(labels), ptr.To[int32](2)
			if kind == "job" {
				wantLabels["team"], wantLimit = "x", nil
			} else {
				wantPods["a"] = "b"
				diff(t, "the restart policy", corev1.RestartPolicyNever, job.Spec.Template.Spec.RestartPolicy)
			}
			diff(t, "the labels", wantLabels, job.Labels)
			diff(t, "the labels of pods", wantPods, job.Spec.Template.Labels)
			diff(t, "the backoff limit", wantLimit, job.Spec.BackoffLimit)
		})
	}
}

func TestQueueIsInherited(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      string
		sequence  map[string]string
		step      string
		wantQueue string
	}{
		"a container":                  {kind: "container", sequence: map[string]string{helper.QueueKey: "q"}, wantQueue: "q"},
		"a Job":                        {kind: "job", sequence: map[string]string{helper.QueueKey: "q"}, wantQueue: "q"},
		"a JobSet":                     {kind: "jobSet", sequence: map[string]string{helper.QueueKey: "q"}, wantQueue: "q"},
		"a Job with its own queue":     {kind: "job", sequence: map[string]string{helper.QueueKey: "q"}, step: "own", wantQueue: "own"},
		"a JobSet in no queue":         {kind: "jobSet"},
		"a Job with a queue of itself": {kind: "job", step: "own", wantQueue: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) {
				sj.Spec, sj.Labels = stepsOf(tc.kind), tc.sequence
				if tc.step != "" {
					sj.Spec.Steps[0].Job.Labels[helper.QueueKey] = tc.step
				}
			})
			diff(t, "whether a queue is named", tc.wantQueue != "", namesQueue(look(w.observed())))
			job, js := NewChild(w.sj, helper.Steps(&w.sj.Spec)[0], 1)
			var labels map[string]string
			var suspend *bool
			if js != nil {
				labels, suspend = js.Labels, js.Spec.Suspend
			} else {
				labels, suspend = job.Labels, job.Spec.Suspend
			}
			diff(t, "the queue", tc.wantQueue, labels[helper.QueueKey])
			diff(t, "whether it is created suspended", tc.wantQueue != "", ptr.Deref(suspend, false))
		})
	}
}

func TestVanishedChildren(t *testing.T) {
	w := newWorld(t).stabilize().vanishes(0)
	diff(t, "what was created", []string{"etl-0/1", "etl-0/2"}, w.created)
	diff(t, "the event", true, slices.Contains(w.events, "Warning JobVanished Job 0 was deleted before it ended, and runs again"))
	w.ends(0, Succeeded).vanishes(0)
	diff(t, "what was created after an end", []string{"etl-0/1", "etl-0/2", "etl-1/1"}, w.created)
	w.child("etl-1").Deleting = true // by a user, with its grace
	w.pass()
	diff(t, "the attempts while it stops", int32(1), w.sj.Status.Steps[1].Attempts)
	w.vanishes(1)
	diff(t, "the attempts when it is gone", int32(2), w.sj.Status.Steps[1].Attempts)
}

func TestTimeToLiveOfSteps(t *testing.T) {
	for _, kind := range []string{"job", "jobSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) {
				sj.Spec = stepsOf(kind)
				sj.Spec.Steps = append(sj.Spec.Steps, batchv1alpha1.SequentialJobStep{Name: "last", Container: &corev1.Container{Name: "main"}})
			})
			w.stabilize().ends(0, Succeeded).wait(59 * time.Second).stabilize()
			diff(t, "the children before", 2, len(w.owned))
			diff(t, "the next look", time.Second, w.due)
			w.wait(time.Second).stabilize()
			diff(t, "the children after", 1, len(w.owned))
			w.ends(1, Succeeded)
			diff(t, "what was created", []string{"etl-0/1", "etl-1/1"}, w.created)
			diff(t, "the number of children", 1, len(w.owned)) // containers have no time of their own
		})
	}
}

func TestTimeToLiveOfSequence(t *testing.T) {
	w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.TTLSecondsAfterFinished = ptr.To[int32](10)
	}).stabilize().ends(0, Failed)
	diff(t, "the next look", 10*time.Second, w.due)
	w.wait(9 * time.Second).stabilize()
	diff(t, "gone before its time", false, w.gone)
	w.wait(time.Second).stabilize()
	diff(t, "gone", true, w.gone)
}

func TestLabelsThatUsersChange(t *testing.T) {
	w := newWorld(t).stabilize()
	w.child("etl-0").Attempt = 0
	w.stabilize()
	diff(t, "what was created", []string{"etl-0/1"}, w.created)
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
}

func TestManagedElsewhere(t *testing.T) {
	w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ManagedBy = ptr.To("example.com/other") })
	diff(t, "whether a pass does anything", false, w.pass())
}
