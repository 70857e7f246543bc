// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestContainersRunOneAfterAnother(t *testing.T) {
	w := newWorld(t).stabilize()
	diff(t, "the state of the first step", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "True JobStarted: Job 0 runs", w.condition("Progressing"))
	diff(t, "Available", "True Operational: the sequence is operational", w.condition("Available"))
	diff(t, "the state", batchv1alpha1.SequentialJobState{Active: 1}, w.sj.Status.State)
	diff(t, "the progress", batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](0), CompletedIndices: []int32{}}, w.sj.Status.Progress)
	w.ends(0, Succeeded).ends(1, Succeeded).ends(2, Succeeded)
	diff(t, "what was created", []string{"etl-0/1", "etl-1/1", "etl-2/1"}, w.created)
	diff(t, "the progress", batchv1alpha1.SequentialJobProgress{CurrentIndex: ptr.To[int32](3), CompletedIndices: []int32{0, 1, 2}}, w.sj.Status.Progress)
	diff(t, "the state", batchv1alpha1.SequentialJobState{Succeeded: 3}, w.sj.Status.State)
	diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
	diff(t, "Progressing", "False Completed: all jobs completed successfully", w.condition("Progressing"))
	diff(t, "the finalizers", []string(nil), w.sj.Finalizers)
	diff(t, "the number of children that are left", 3, len(w.owned))
	diff(t, "the events", []string{
		"Normal JobStarted Started job 0", "Normal JobCompleted Job 0 completed successfully",
		"Normal JobStarted Started job 1", "Normal JobCompleted Job 1 completed successfully",
		"Normal JobStarted Started job 2", "Normal JobCompleted Job 2 completed successfully",
		"Normal AllJobsCompleted Completed 3 jobs",
	}, w.events)
}

// TestFailedExample is the example of the prototype: of three containers the second one fails.
func TestFailedExample(t *testing.T) {
	w := newWorld(t).stabilize().ends(0, Succeeded).ends(1, Failed)
	diff(t, "Failed", "True JobFailed: Job 1 failed: BackoffLimitExceeded", w.condition("Failed"))
	diff(t, "Available", "False Failed: Job 1 failed: BackoffLimitExceeded", w.condition("Available"))
	diff(t, "Progressing", "False JobFailed: Job 1 failed: BackoffLimitExceeded", w.condition("Progressing"))
	diff(t, "the state", batchv1alpha1.SequentialJobState{Succeeded: 1, Failed: 1}, w.sj.Status.State)
	diff(t, "the progress", batchv1alpha1.SequentialJobProgress{
		CurrentIndex: ptr.To[int32](1), CompletedIndices: []int32{0}, FailedIndex: ptr.To[int32](1), FailureReason: "BackoffLimitExceeded",
	}, w.sj.Status.Progress)
	diff(t, "what was created", []string{"etl-0/1", "etl-1/1"}, w.created)
	diff(t, "the last event", "Warning JobFailed Job 1 failed: BackoffLimitExceeded", w.events[len(w.events)-1])
	step := w.sj.Status.Steps[1]
	diff(t, "the exit code", ptr.To[int32](3), step.ExitCode)
	diff(t, "the first cause", &jobsetv1alpha2.FailureCause{Job: "etl-1", Pod: "pod", Container: "main", ExitCode: ptr.To[int32](3)}, step.FirstCause)
	diff(t, "the finalizers", []string(nil), w.sj.Finalizers)
}

// TestFinalizerComesBack: a child is active, and the finalizer is gone: a user removed it, or the child was created late.
func TestFinalizerComesBack(t *testing.T) {
	w := newWorld(t).stabilize().change(func(sj *batchv1alpha1.SequentialJob) { sj.Finalizers = nil })
	w.pass()
	diff(t, "the finalizers", []string{batchv1alpha1.SequentialJobFinalizer}, w.sj.Finalizers)
	w.ends(0, Succeeded).ends(1, Succeeded).ends(2, Succeeded)
	diff(t, "the finalizers in the end", []string(nil), w.sj.Finalizers)
}

// TestFinalizerStaysForUnseenChildren has a cancelled sequence whose child no cache shows. The API is asked once.
func TestFinalizerStaysForUnseenChildren(t *testing.T) {
	w := newWorld(t).stabilize()
	w.change(func(sj *batchv1alpha1.SequentialJob) {
		put(&sj.Status, metav1.Time{}, failed(batchv1alpha1.ReasonCancelled, "cancelled by alice"))
	})
	o := Observed{SequentialJob: w.sj, Restored: hostplan.None[Restored]()}
	asked := Decide(o)
	diff(t, "the questions", []string{"unseen child"}, asked.Questions())
	for name, tc := range map[string]struct {
		unseen hostplan.Known[LiveChild]
		want   bool
		after  time.Duration
	}{
		"it exists":         {unseen: hostplan.Of(LiveChild{Child: Child{ChildRef: *asked.Asks.Unseen}}), after: time.Second},
		"it cannot be read": {unseen: hostplan.NotObtained[LiveChild]()},
		"there is none":     {unseen: hostplan.None[LiveChild](), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Unseen = tc.unseen
			p := Decide(o)
			diff(t, "the questions", []string(nil), p.Questions())
			diff(t, "whether the finalizer goes", tc.want, p.RemoveFinalizer)
			diff(t, "when to look again", tc.after, p.RequeueAfter)
		})
	}
}
