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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func suspend(value bool) func(*batchv1alpha1.SequentialJob) {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(value) }
}

func queued(sj *batchv1alpha1.SequentialJob) {
	sj.Labels = map[string]string{helper.QueueKey: "q"}
}

func TestSuspendedBeforeTheStart(t *testing.T) {
	w := newWorld(t, suspend(true)).stabilize()
	diff(t, "Suspended", "True Suspended: the sequence is suspended", w.condition("Suspended"))
	diff(t, "Progressing", "False Suspended: the sequence is suspended", w.condition("Progressing"))
	diff(t, "the progress", batchv1alpha1.SequentialJobProgress{CompletedIndices: []int32{}}, w.sj.Status.Progress)
	diff(t, "the start", true, w.sj.Status.StartTime == nil)
	w.change(suspend(false)).stabilize()
	diff(t, "Suspended", "False Resumed: the sequence was resumed", w.condition("Suspended"))
	diff(t, "what was created", []string{"etl-0/1"}, w.created)
}

func TestSuspendedWhileAStepRuns(t *testing.T) {
	w := newWorld(t).stabilize()
	w.change(suspend(true))
	w.child("etl-0").Busy = true
	w.pass() // the patch
	w.child("etl-0").Busy = true
	w.stabilize()
	diff(t, "Suspended while pods run", "", w.condition("Suspended"))
	diff(t, "Progressing", "False Suspended: the sequence is suspended", w.condition("Progressing"))
	w.child("etl-0").Busy = false
	w.stabilize()
	diff(t, "Suspended", "True Suspended: the sequence is suspended", w.condition("Suspended"))
	diff(t, "the child", true, w.child("etl-0").Suspended)
	diff(t, "the state", batchv1alpha1.StepSuspended, w.sj.Status.Steps[0].State)
	w.change(suspend(false)).stabilize()
	diff(t, "the child", false, w.child("etl-0").Suspended)
	diff(t, "Suspended", "False Resumed: the sequence was resumed", w.condition("Suspended"))
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
	diff(t, "how often the start is reported", 1, w.starts())
}

// TestSuspendedWhileAStepEnds has a child that ends although its sequence was suspended.
func TestSuspendedWhileAStepEnds(t *testing.T) {
	w := newWorld(t).stabilize().change(suspend(true)).ends(0, Succeeded)
	diff(t, "what was created", []string{"etl-0/1"}, w.created)
	diff(t, "the current index", ptr.To[int32](1), w.sj.Status.Progress.CurrentIndex)
	diff(t, "the number of steps that have begun", 1, len(w.sj.Status.Steps))
	diff(t, "Suspended", "True Suspended: the sequence is suspended", w.condition("Suspended"))
	diff(t, "the finalizers", []string(nil), w.sj.Finalizers)
	w.change(suspend(false)).stabilize()
	diff(t, "what was created", []string{"etl-0/1", "etl-1/1"}, w.created)
}

func TestQueuedChildren(t *testing.T) {
	w := newWorld(t, queued).stabilize()
	diff(t, "the state", batchv1alpha1.StepWaiting, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "False WaitingForQuota: Job 0 waits for quota in queue q: Kueue has made no Workload for it yet", w.condition("Progressing"))
	w.queue.Workload = hostplan.Of(&Workload{Name: "w", Active: true, Message: "couldn't assign flavors"})
	w.stabilize()
	diff(t, "Progressing", "False WaitingForQuota: Job 0 waits for quota in queue q: couldn't assign flavors", w.condition("Progressing"))
	diff(t, "whether time counts", true, w.sj.Status.ActiveSince == nil)
	diff(t, "the start is not reported", false, slices.Contains(w.events, "Normal JobStarted Started job 0"))

	w.child("etl-0").Suspended = false // Kueue
	w.stabilize()
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "True JobStarted: Job 0 runs", w.condition("Progressing"))
	diff(t, "the start is reported", true, slices.Contains(w.events, "Normal JobStarted Started job 0"))

	w.child("etl-0").Suspended = true // evicted
	w.stabilize()
	diff(t, "the state", batchv1alpha1.StepWaiting, w.sj.Status.Steps[0].State)
}

func TestSuspendedQueuedChildren(t *testing.T) {
	w := newWorld(t, queued)
	w.stabilize()
	w.queue.Workload = hostplan.Of(&Workload{Name: "w", Active: true})
	w.child("etl-0").Suspended = false
	w.stabilize().change(suspend(true)).stabilize()
	diff(t, "the Workload", false, w.queue.Workload.Value().Active)
	diff(t, "who suspends the child", false, w.child("etl-0").Suspended)
	w.child("etl-0").Suspended, w.child("etl-0").Busy = true, false // Kueue
	w.stabilize()
	diff(t, "Suspended", "True Suspended: the sequence is suspended", w.condition("Suspended"))
	w.change(suspend(false)).stabilize()
	diff(t, "the Workload", true, w.queue.Workload.Value().Active)
	diff(t, "the child", true, w.child("etl-0").Suspended)
	diff(t, "the state", batchv1alpha1.StepWaiting, w.sj.Status.Steps[0].State)
}

// TestSuspendedQueuedChildrenOfUnknownWorkloads suspends a sequence while the Workloads are being read. Kueue would
// start a child again whose Workload is active, so that its pods would stop, start, and stop once more.
func TestSuspendedQueuedChildrenOfUnknownWorkloads(t *testing.T) {
	w := newWorld(t, queued).stabilize()
	w.queue.Workload = hostplan.Of(&Workload{Name: "w", Active: true})
	w.child("etl-0").Suspended, w.child("etl-0").Busy = false, true
	w.stabilize()
	known := w.queue
	w.queue = Queue{Served: true, Unreadable: "workloads (forbidden)"} // a controller that has just started
	w.change(suspend(true)).stabilize()
	diff(t, "the child", false, w.child("etl-0").Suspended)
	diff(t, "Suspended", "", w.condition("Suspended"))
	diff(t, "Progressing", "False Suspended: the sequence is suspended; job 0 runs until its Workload can be read: workloads (forbidden)", w.condition("Progressing"))
	w.queue = known
	w.stabilize()
	diff(t, "the Workload", false, w.queue.Workload.Value().Active)
	diff(t, "the child", false, w.child("etl-0").Suspended) // Kueue suspends it
	diff(t, "Progressing", "False Suspended: the sequence is suspended", w.condition("Progressing"))
}

// TestQueuedChildrenOfUnknownWorkloads says nothing of a Workload that may exist.
func TestQueuedChildrenOfUnknownWorkloads(t *testing.T) {
	w := newWorld(t, queued)
	w.queue = Queue{Served: true}
	w.stabilize()
	diff(t, "Progressing", "False WaitingForQuota: Job 0 waits for quota in queue q: the Workloads are not known yet", w.condition("Progressing"))
}

// TestWorkloadsOfOthers has a Workload that an administrator or Kueue made inactive.
func TestWorkloadsOfOthers(t *testing.T) {
	w := newWorld(t, queued).stabilize()
	w.queue.Workload = hostplan.Of(&Workload{Name: "w"})
	w.stabilize()
	diff(t, "the Workload", false, w.queue.Workload.Value().Active)
	w.change(suspend(true)).stabilize().change(suspend(false)).stabilize()
	diff(t, "the Workload after a resumption", false, w.queue.Workload.Value().Active)
}

func TestQueueWithoutKueue(t *testing.T) {
	w := newWorld(t, queued)
	w.queue.Served = false
	w.stabilize()
	want := "True QueueUnavailable: Job 0 waits for quota, but the cluster does not serve the API of Kueue: " +
		"install Kueue, or remove the label kueue.x-k8s.io/queue-name from the SequentialJob and from job etl-0"
	diff(t, "ResourcesUnavailable", want, w.condition("ResourcesUnavailable"))
	w.child("etl-0").Suspended = false // by a user
	w.stabilize().change(suspend(true)).stabilize()
	diff(t, "the child", true, w.child("etl-0").Suspended)
	w.queue.Served = true
	w.stabilize()
	diff(t, "ResourcesUnavailable", "False ResourcesAvailable: the current job has what it needs", w.condition("ResourcesUnavailable"))
}

func TestCancel(t *testing.T) {
	cancel := func(sj *batchv1alpha1.SequentialJob) {
		put(&sj.Status, metav1.Time{}, failed(batchv1alpha1.ReasonCancelled, "cancelled by alice"))
	}
	w := newWorld(t).stabilize().ends(0, Succeeded).change(cancel).stabilize()
	diff(t, "the children that are left", 1, len(w.owned))
	diff(t, "the event", true, slices.Contains(w.events, "Normal JobStopped Stopped job 1, Job etl-1, because the SequentialJob was cancelled"))
	diff(t, "Available", "False Failed: cancelled by alice", w.condition("Available"))
	diff(t, "Progressing", "False Cancelled: cancelled by alice", w.condition("Progressing"))
	diff(t, "the state", batchv1alpha1.SequentialJobState{Succeeded: 1, Failed: 1}, w.sj.Status.State)
	diff(t, "the finalizers", []string(nil), w.sj.Finalizers)
	diff(t, "the end", true, w.sj.Status.CompletionTime != nil)

	// A step that ended in the moment of a restart, which was cancelled then, leaves its child for its logs.
	late := newWorld(t).stabilize()
	late.child("etl-0").End = Succeeded
	late.change(func(sj *batchv1alpha1.SequentialJob) {
		sj.Status.Steps[0].Attempts, sj.Status.Steps[0].ChildUID, sj.Status.Steps[0].State = 2, "", batchv1alpha1.StepStarting
	}).change(cancel).stabilize()
	diff(t, "the children of an earlier attempt", 1, len(late.owned))

	before := newWorld(t, suspend(true)).stabilize().change(cancel).stabilize()
	diff(t, "the state of one that never started", batchv1alpha1.SequentialJobState{}, before.sj.Status.State)
	diff(t, "the progress", batchv1alpha1.SequentialJobProgress{CompletedIndices: []int32{}}, before.sj.Status.Progress)
}

// A child that another controller suspends again and again is left alone, and the condition names that controller.
func TestChildrenThatOthersSuspend(t *testing.T) {
	w := newWorld(t).stabilize()
	w.child("etl-0").Suspended = true // kueue, for the third time
	w.contest = &Contest{By: "kueue", Next: time.Date(2026, 1, 1, 0, 1, 3, 0, time.UTC)}
	w.stabilize()
	diff(t, "the child", true, w.child("etl-0").Suspended)
	diff(t, "the state", batchv1alpha1.StepWaiting, w.sj.Status.Steps[0].State)
	const message = "Job 0 waits: kueue suspends job etl-0 again whenever it is resumed; the controller resumes it again at 2026-01-01T00:01:03Z"
	diff(t, "Progressing", "False SuspendedByOthers: "+message, w.condition("Progressing"))
	diff(t, "whether time counts", true, w.sj.Status.ActiveSince == nil)
	diff(t, "the event", 1, countOf(w.events, "Warning SuspendedByOthers "+message))

	w.contest.By = ""
	w.stabilize()
	diff(t, "Progressing", "False SuspendedByOthers: Job 0 waits: another client suspends job etl-0 again whenever it is resumed; the controller resumes it again at 2026-01-01T00:01:03Z",
		w.condition("Progressing"))
	w.child("etl-0").Suspended = false // an administrator
	w.stabilize()
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "True JobStarted: Job 0 runs", w.condition("Progressing"))
}

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// starts returns how often the start of the first step was reported.
func (w *world) starts() (n int) {
	for _, e := range w.events {
		if e == "Normal JobStarted Started job 0" {
			n++
		}
	}
	return n
}

// TestStartOfStepSuspendedByOthers has another client that suspends the child from the beginning, whenever it is resumed.
func TestStartOfStepSuspendedByOthers(t *testing.T) {
	w := newWorld(t)
	for len(w.owned) == 0 {
		w.pass()
	}
	for pass := range 10 {
		w.child("etl-0").Suspended = true
		if pass >= 3 {
			w.contest = &Contest{By: "kueue"}
		}
		w.pass()
	}
	diff(t, "how often the start is reported while it never ran", 0, w.starts())
	diff(t, "the state", batchv1alpha1.StepWaiting, w.sj.Status.Steps[0].State)
	w.child("etl-0").Suspended, w.contest = false, nil
	w.stabilize()
	diff(t, "how often the start is reported once it runs", 1, w.starts())
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
}

// TestStepRunsOnceItsChildDoes checks that a step whose child is about to be resumed is not reported as running.
func TestStepRunsOnceItsChildDoes(t *testing.T) {
	w := newWorld(t)
	for len(w.owned) == 0 {
		w.pass()
	}
	w.child("etl-0").Suspended = true
	w.pass() // resumes it
	diff(t, "the state", batchv1alpha1.StepStarting, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "True JobStarted: Job 0 is about to start", w.condition("Progressing"))
	w.stabilize()
	diff(t, "the state", batchv1alpha1.StepRunning, w.sj.Status.Steps[0].State)
	diff(t, "Progressing", "True JobStarted: Job 0 runs", w.condition("Progressing"))
	diff(t, "how often the start is reported", 1, w.starts())
}
