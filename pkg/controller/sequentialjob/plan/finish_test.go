// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

func (w *world) deleted() *world {
	return w.change(func(sj *batchv1alpha1.SequentialJob) { sj.DeletionTimestamp = &metav1.Time{Time: w.now} })
}

func TestDeletion(t *testing.T) {
	w := newWorld(t).stabilize().ends(0, Succeeded).deleted()
	w.pass()
	diff(t, "the finalizers while the child stops", 1, len(w.sj.Finalizers))
	diff(t, "the event", true, slices.Contains(w.events, "Normal JobStopped Stopped job 1, Job etl-1, because the SequentialJob is being deleted"))
	w.stabilize()
	diff(t, "gone", true, w.gone)
	diff(t, "the children that are left to the garbage collector", 1, len(w.owned))
}

func TestDeletionWithoutPermission(t *testing.T) {
	w := newWorld(t).stabilize().deleted()
	w.forbid = true
	w.stabilize()
	diff(t, "gone", true, w.gone)
	want := "Warning JobNotStopped Job 0 was left to run because the controller has no permission to delete Job etl-0"
	diff(t, "the event", true, slices.Contains(w.events, want))
}

func TestDeletionThatFails(t *testing.T) {
	w := newWorld(t).stabilize().deleted()
	w.owned, w.fail = nil, "no answer"
	w.stabilize()
	diff(t, "gone", false, w.gone)
	w.fail = ""
	w.stabilize()
	diff(t, "gone", true, w.gone)
}

// TestDeletionOfOrphans has dependents that the garbage collector has orphaned: no cache shows them.
func TestDeletionOfOrphans(t *testing.T) {
	w := newWorld(t).stabilize().deleted()
	uid := w.child("etl-0").UID
	w.owned = nil
	p := Decide(w.observed())
	diff(t, "what is deleted", []Deletion{{ChildRef: ChildRef{Kind: "Job", Name: "etl-0", UID: uid}}}, p.Delete)
	diff(t, "whether the finalizer goes", true, p.RemoveFinalizer)
	done := newWorld(t, suspend(true)).stabilize().deleted()
	diff(t, "what is done about one without the finalizer", Plan{}, Decide(done.observed()))
}

func TestNameConflict(t *testing.T) {
	w := newWorld(t)
	w.creation = NameTaken
	w.stabilize()
	want := "False NameConflict: a Job named etl-0 already exists and does not belong to the sequence; job 0 starts once that one is deleted"
	diff(t, "Available", want, w.condition("Available"))
	diff(t, "the next look", time.Second, w.due)
	w.wait(10 * time.Second).stabilize()
	diff(t, "the next look", 10*time.Second, w.due)
	w.creation = Created
	w.stabilize()
	diff(t, "Available", "True Operational: the sequence is operational", w.condition("Available"))
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal   Refusal
		condition string
		at, later string
		after     string
	}{
		"a quota that is used up": {
			refusal: Refusal{Reason: reasons.QuotaExceeded, Message: "exceeded quota: q"}, condition: "ResourcesUnavailable",
			at: "True QuotaExceeded: Job 0 could not be created: exceeded quota: q", later: "True QuotaExceeded: Job 0 could not be created: exceeded quota: q",
			after: "False ResourcesAvailable: the current job has what it needs",
		},
		"an API that asks for a later retry": {
			refusal: Refusal{Reason: reasons.FailedCreate, Message: "too many requests", MayPass: true}, condition: "ResourcesUnavailable",
			later: "True ClusterOverloaded: Job 0 could not be created: too many requests",
			after: "False ResourcesAvailable: the current job has what it needs",
		},
		"an invalid container": {
			refusal: Refusal{Reason: reasons.Invalid, Message: `Job.batch "etl-0" is invalid: [spec.template.spec.containers[0].image: Required value, spec.backoffLimit: Invalid value]`}, condition: "Available",
			at:    `False JobCreationFailed: Job 0 could not be created: Job.batch "etl-0" is invalid: [spec.containers[0].image: Required value, spec.backoffLimit: Invalid value]`,
			later: `False JobCreationFailed: Job 0 could not be created: Job.batch "etl-0" is invalid: [spec.containers[0].image: Required value, spec.backoffLimit: Invalid value]`,
			after: "True Operational: the sequence is operational",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.creation, w.refusal = Refused, &tc.refusal
			w.stabilize()
			if tc.at != "" || tc.condition != "Available" {
				diff(t, "the condition at once", tc.at, w.condition(tc.condition))
			}
			w.wait(15 * time.Second).stabilize()
			diff(t, "the condition after a while", tc.later, w.condition(tc.condition))
			diff(t, "the phase", batchv1alpha1.PhasePending, helper.Phase(w.sj))
			w.creation, w.refusal = Created, nil
			w.stabilize()
			diff(t, "the condition in the end", tc.after, w.condition(tc.condition))
		})
	}
}

func TestPathsAsUsersKnowThem(t *testing.T) {
	const message = `Job.batch "etl-0" is invalid: spec.template.spec.containers[0].image: Required value, (spec.parallelism): x, my.spec.x, spec.template.spec.volumes[1].name: y`
	for name, tc := range map[string]struct {
		step helper.Step
		want string
	}{
		"a container": {helper.Step{Index: 2}, `Job.batch "etl-0" is invalid: spec.containers[2].image: Required value, (spec.parallelism): x, my.spec.x, spec.template.spec.volumes[1].name: y`},
		"a container of a step": {
			helper.Step{Index: 2, InSteps: true},
			`Job.batch "etl-0" is invalid: spec.steps[2].container.image: Required value, (spec.parallelism): x, my.spec.x, spec.template.spec.volumes[1].name: y`,
		},
		"a Job": {
			helper.Steps(&batchv1alpha1.SequentialJobSpec{Steps: stepsOf("job").Steps})[0],
			`Job.batch "etl-0" is invalid: spec.steps[0].job.spec.template.spec.containers[0].image: Required value, (spec.steps[0].job.spec.parallelism): x, my.spec.x, spec.steps[0].job.spec.template.spec.volumes[1].name: y`,
		},
		"a JobSet": {
			helper.Steps(&batchv1alpha1.SequentialJobSpec{Steps: stepsOf("jobSet").Steps})[0],
			`Job.batch "etl-0" is invalid: spec.steps[0].jobSet.spec.template.spec.containers[0].image: Required value, (spec.steps[0].jobSet.spec.parallelism): x, my.spec.x, spec.steps[0].jobSet.spec.template.spec.volumes[1].name: y`,
		},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "the message", tc.want, asWritten(tc.step, message)) })
	}
}

func TestReconciliationErrors(t *testing.T) {
	w := newWorld(t)
	w.fail = "patching job ns/etl-0: no answer"
	w.stabilize()
	diff(t, "Failed", "True ReconciliationError: Failed to reconcile: patching job ns/etl-0: no answer", w.condition("Failed"))
	diff(t, "the event", "Warning ReconciliationFailed Failed to reconcile: patching job ns/etl-0: no answer", w.events[0])
	diff(t, "the phase", batchv1alpha1.PhaseRunning, helper.Phase(w.sj))
	w.fail = ""
	w.stabilize()
	diff(t, "Failed", "False Reconciled: the sequence was reconciled", w.condition("Failed"))
	w.ends(0, Succeeded).ends(1, Failed)
	w.fail = "again"
	w.stabilize()
	diff(t, "Failed after the end", "True JobFailed: Job 1 failed: BackoffLimitExceeded", w.condition("Failed"))
}

// TestFailuresThatPass has an API that fails from time to time, and then for longer than the controller waits before it reports a failure.
func TestFailuresThatPass(t *testing.T) {
	w := newWorld(t).stabilize()
	w.mayPass = true
	reported := func() bool {
		return slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, reasonReconciliationFailed) })
	}
	for range 3 {
		w.fail = "no answer"
		w.stabilize().wait(14 * time.Second).stabilize()
		w.fail = ""
		w.stabilize().wait(14 * time.Second)
	}
	diff(t, "Failed", "", w.condition("Failed"))
	diff(t, "whether it is reported", false, reported())
	w.fail = "no answer"
	w.stabilize().wait(15 * time.Second).stabilize()
	diff(t, "Failed once it does not answer for 15 s", "True ReconciliationError: Failed to reconcile: no answer", w.condition("Failed"))
	diff(t, "whether it is reported", true, reported())
	w.failing = time.Time{} // another process
	w.stabilize()
	diff(t, "Failed after a restart of the controller", "True ReconciliationError: Failed to reconcile: no answer", w.condition("Failed"))
	w.fail = ""
	w.stabilize()
	diff(t, "Failed in the end", "False Reconciled: the sequence was reconciled", w.condition("Failed"))
}

func TestUnschedulablePods(t *testing.T) {
	w := newWorld(t).stabilize()
	w.waits = Unschedulable{Pods: 2, Reason: "0/3 nodes are available", Since: w.now}
	w.stabilize()
	diff(t, "ResourcesUnavailable at once", "", w.condition("ResourcesUnavailable"))
	diff(t, "the next look", 30*time.Second, w.due)
	w.wait(30 * time.Second).stabilize()
	diff(t, "ResourcesUnavailable", "True Unschedulable: 2 pods of job 0 cannot be scheduled: 0/3 nodes are available", w.condition("ResourcesUnavailable"))
	w.waits = Unschedulable{}
	w.stabilize()
	diff(t, "ResourcesUnavailable", "False ResourcesAvailable: the current job has what it needs", w.condition("ResourcesUnavailable"))
}

// TestUnseenChildren has a child that status knows and no cache shows.
func TestUnseenChildren(t *testing.T) {
	w := newWorld(t).stabilize()
	diff(t, "while the cache shows it", (*ChildRef)(nil), unseen(look(w.observed())))
	uid := w.child("etl-0").UID
	w.owned = nil
	diff(t, "when it does not", &ChildRef{Kind: "Job", Name: "etl-0", UID: uid}, unseen(look(w.observed())))
}

// TestEndOfStepFollowsOwnClock checks the end of a step whose Job is on a server with another clock.
func TestEndOfStepFollowsOwnClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"the same clock": 0, "a clock that is behind": -5 * time.Minute, "a clock that is ahead": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).stabilize()
			began := w.now
			kid := w.child("etl-0")
			kid.Created = metav1.NewTime(began.Add(ahead))
			kid.End, kid.Busy, kid.EndTime = Succeeded, false, &metav1.Time{Time: began.Add(time.Minute + ahead)}
			want := began.Add(time.Minute)
			if ahead > 0 {
				want = began.Add(2 * time.Minute) // it cannot be known, but is not in the future
			}
			w.wait(2 * time.Minute).stabilize()
			diff(t, "the end", want, w.sj.Status.Steps[0].CompletionTime.Time)
		})
	}
}
