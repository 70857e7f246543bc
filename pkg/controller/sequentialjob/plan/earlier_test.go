// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// jobSetFirst makes the first step a JobSet of two Jobs.
func jobSetFirst(sj *batchv1alpha1.SequentialJob) {
	rj := jobsetv1alpha2.ReplicatedJob{Name: "w", Replicas: ptr.To[int32](2)}
	sj.Spec.Steps = []batchv1alpha1.SequentialJobStep{{Name: "a", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}}
	sj.Spec.Steps[0].JobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{rj}
	for _, c := range sj.Spec.Containers[1:] {
		sj.Spec.Steps = append(sj.Spec.Steps, batchv1alpha1.SequentialJobStep{Name: c.Name, Container: c.DeepCopy()})
	}
	sj.Spec.Containers = nil
}

func TestNextStepWaitsForPods(t *testing.T) {
	w := newWorld(t, jobSetFirst).stabilize()
	diff(t, "the questions before the first step", 0, len(w.asked))
	w.earlier = hostplan.Of("pod etl-0-w-1-0-x on node n1")
	w.ends(0, Succeeded)
	diff(t, "the question", EarlierQuery{Index: 1, Attempt: 1, JobSets: []string{"etl-0"}}, w.asked[0])
	diff(t, "the state of the step that has ended", batchv1alpha1.StepSucceeded, w.sj.Status.Steps[0].State)
	diff(t, "the state of the next one", batchv1alpha1.StepStarting, w.sj.Status.Steps[1].State)
	diff(t, "Progressing", "False WaitingForPods: Job 1 starts once the pods of earlier jobs have ended: pod etl-0-w-1-0-x on node n1 still runs",
		w.condition("Progressing"))
	diff(t, "when it is looked again", earlierSoonest, w.due)
	w.wait(10 * time.Second).stabilize()
	diff(t, "when it is looked again", 10*time.Second, w.due)
	w.wait(time.Hour).stabilize()
	diff(t, "when it is looked again", earlierLatest, w.due)
	w.earlier = hostplan.None[string]()
	w.stabilize()
	diff(t, "what was created", []string{"etl-0/1", "etl-1/1"}, w.created)
	diff(t, "Progressing", "True JobStarted: Job 1 runs", w.condition("Progressing"))
}

func TestUnknownPodsAreReportedAfterWhile(t *testing.T) {
	w := newWorld(t).stabilize()
	w.earlier, w.unreadable = hostplan.NotObtained[string](), "no answer"
	w.ends(0, Succeeded)
	diff(t, "Progressing", "True JobCompleted: Job 0 completed, and job 1 is next", w.condition("Progressing"))
	w.wait(hostplan.PassesAfter).stabilize()
	diff(t, "Progressing", "False WaitingForPods: Job 1 starts once it is known whether pods of earlier jobs run: no answer", w.condition("Progressing"))
	diff(t, "what was created", []string{"etl-0/1"}, w.created)
}

// TestJobSetsThatMayHaveJobs are those whose Jobs have to be read.
func TestJobSetsThatMayHaveJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*world)
		want    EarlierQuery
	}{
		"all Jobs have ended":         {func(w *world) { w.child("etl-0").JobsEnded = true; w.ends(0, Succeeded) }, EarlierQuery{Index: 1, Attempt: 1}},
		"some Jobs may not":           {func(w *world) { w.ends(0, Succeeded) }, EarlierQuery{Index: 1, Attempt: 1, JobSets: []string{"etl-0"}}},
		"the JobSet is gone":          {func(w *world) { w.ends(0, Succeeded); w.vanishes(0).ends(1, Succeeded) }, EarlierQuery{Index: 2, Attempt: 1, JobSets: []string{"etl-0"}}},
		"it vanished while it ran":    {func(w *world) { w.vanishes(0) }, EarlierQuery{Index: 0, Attempt: 2, JobSets: []string{"etl-0"}}},
		"a later step vanished":       {func(w *world) { w.child("etl-0").JobsEnded = true; w.ends(0, Succeeded).vanishes(1) }, EarlierQuery{Index: 1, Attempt: 2, JobSets: []string{"etl-1"}}},
		"a step after one that ended": {func(w *world) { w.child("etl-0").JobsEnded = true; w.ends(0, Succeeded).ends(1, Succeeded) }, EarlierQuery{Index: 2, Attempt: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, jobSetFirst).stabilize()
			tc.happens(w)
			diff(t, "the last question", tc.want, w.asked[len(w.asked)-1])
		})
	}
}

// TestSuspendedSequenceAsksNothing checks that nothing is read while nothing is to be created.
func TestSuspendedSequenceAsksNothing(t *testing.T) {
	w := newWorld(t).stabilize()
	w.earlier = hostplan.Of("pod x")
	w.ends(0, Succeeded).change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) })
	before := len(w.asked)
	w.stabilize()
	diff(t, "the questions", before, len(w.asked))
	diff(t, "Progressing", "False Suspended: the sequence is suspended", w.condition("Progressing"))
	w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = nil }).stabilize()
	diff(t, "Progressing", "False WaitingForPods: Job 1 starts once the pods of earlier jobs have ended: pod x still runs", w.condition("Progressing"))
}
