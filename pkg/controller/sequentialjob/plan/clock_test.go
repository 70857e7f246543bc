// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func TestDeadline(t *testing.T) {
	limit := func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](100) }
	w := newWorld(t, limit).stabilize()
	diff(t, "the next look", 100*time.Second, w.due)
	w.wait(60*time.Second).ends(0, Succeeded)
	diff(t, "the next look", 40*time.Second, w.due)
	w.change(suspend(true)).stabilize().wait(time.Hour).stabilize()
	diff(t, "the time that counts", int64(60), w.sj.Status.ActiveSeconds)
	w.change(suspend(false)).stabilize()
	w.wait(39 * time.Second).stabilize()
	diff(t, "Failed", "", w.condition("Failed"))
	w.wait(time.Second).stabilize()
	diff(t, "Failed", "True DeadlineExceeded: Job 1 did not end in time: the sequence was active for 100 seconds", w.condition("Failed"))
	diff(t, "the children that are left", 1, len(w.owned))
	diff(t, "the state", batchv1alpha1.SequentialJobState{Succeeded: 1, Failed: 1}, w.sj.Status.State)
	diff(t, "the state of the step", batchv1alpha1.StepFailed, w.sj.Status.Steps[1].State)
	diff(t, "the reason", "DeadlineExceeded", w.sj.Status.Progress.FailureReason)
	diff(t, "the event", true, slices.Contains(w.events, "Normal JobStopped Stopped job 1, Job etl-1, because the SequentialJob has ended"))
	diff(t, "the finalizers", []string(nil), w.sj.Finalizers)
}

// TestDeadlineWhileWaiting has a step that waits for quota for longer than the deadline.
func TestDeadlineWhileWaiting(t *testing.T) {
	w := newWorld(t, queued, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](100) }).stabilize()
	w.wait(time.Hour).stabilize()
	diff(t, "Failed", "", w.condition("Failed"))
	w.child("etl-0").Suspended = false
	w.stabilize().wait(100 * time.Second).stabilize()
	diff(t, "Failed", "True DeadlineExceeded: Job 0 did not end in time: the sequence was active for 100 seconds", w.condition("Failed"))
}

// TestDeadlineIsDueOnceItsClockIsStored has a clock that starts with a status that may not be stored: until it is, each decision starts the
// clock again, and its deadline would take the place of the pause after a status that is refused.
func TestDeadlineIsDueOnceItsClockIsStored(t *testing.T) {
	o := heldSequence(true, heldChild())
	o.SequentialJob.Spec.ActiveDeadlineSeconds = ptr.To[int64](100)
	p := Decide(o)
	diff(t, "the next look while the clock starts", time.Duration(0), p.RequeueAfter)
	diff(t, "the deadline that acts while the clock starts", time.Duration(0), p.ActsAfter)
	o.SequentialJob.Status, o.Now = *p.Status, metav1.NewTime(o.Now.Add(time.Second))
	diff(t, "the deadline that acts once the start of the clock is stored", 99*time.Second, Decide(o).ActsAfter)
}
