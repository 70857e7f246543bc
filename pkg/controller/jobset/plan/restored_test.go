// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// ranOnce is what the status of a set of two Jobs was that ran when the backup was made.
func ranOnce(js *jobsetv1alpha2.JobSet) {
	js.Generation = 5
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 2, Active: 2}}
}

func inQueue(js *jobsetv1alpha2.JobSet) {
	js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
}

func isHeld(js *jobsetv1alpha2.JobSet) {
	withCondition(jobsetv1alpha2.Held, metav1.ConditionTrue, jobsetv1alpha2.ReasonRestoredFromBackup, "m")(js)
}

func hasFailed(js *jobsetv1alpha2.JobSet) {
	withCondition(jobsetv1alpha2.JobSetFailed, metav1.ConditionTrue, "FailedJobs", "m")(js)
	js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed
}

func attempts(list ...jobsetv1alpha2.Attempt) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts = list }
}

const heldTrue = "Held=True RestoredFromBackup"

// TestAfterRestore decides about sets that were not written since the restore, unless the case says otherwise.
func TestAfterRestore(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	two := with("w", 2)
	held := summary{Conditions: []string{heldTrue}, Events: []string{"Warning RestoredFromBackup"}}
	runs := jobNamed("w", 0, ready, releasedAt("5"))
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		// written means that the set was written since.
		written bool
		// irrelevant means that the decision does not need to know whether the store was restored.
		irrelevant bool
		want       summary
	}{
		"a set whose Jobs are gone is held":                  {set: []set{two, ranOnce}, want: held},
		"a set that was restarted once, too":                 {set: []set{two, restarted(1, 1)}, want: summary{Restarts: 1, Counted: 1, Conditions: held.Conditions, Events: held.Events}},
		"a set that has begun an attempt, too":               {set: []set{two, attempts(jobsetv1alpha2.Attempt{Number: 1})}, want: held},
		"a set of a queue is held although it is suspended":  {set: []set{two, ranOnce, isSuspended, inQueue}, want: summary{Conditions: []string{heldTrue, "Suspended=True SuspendedJobs"}, Events: []string{"Warning RestoredFromBackup", "Normal SuspendedJobs"}}},
		"Jobs that are being deleted do not count":           {set: []set{two, ranOnce}, jobs: []*batchv1.Job{jobNamed("w", 0, ready, terminating)}, want: held},
		"a set that was written since runs again":            {set: []set{two, ranOnce}, written: true, want: summary{Create: []string{"js-w-0", "js-w-1"}}},
		"a set that had not started starts":                  {set: []set{two}, irrelevant: true, want: summary{Create: []string{"js-w-0", "js-w-1"}}},
		"a suspended set waits for a person anyway":          {set: []set{two, ranOnce, isSuspended}, irrelevant: true, want: summary{Create: []string{"js-w-0", "js-w-1"}, Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}}},
		"a set with some of its Jobs is not held":            {set: []set{two, ranOnce}, jobs: []*batchv1.Job{runs}, irrelevant: true, want: summary{Create: []string{"js-w-1"}}},
		"a Job of an earlier attempt shows that it restarts": {set: []set{two, restarted(1, 1), failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 0, terminating)}, irrelevant: true, want: summary{Restarts: 1, Counted: 1, Create: []string{"js-w-1"}}},
		"a held set gets nothing":                            {set: []set{two, ranOnce, isHeld}, irrelevant: true, written: true, want: summary{Conditions: []string{heldTrue}}},
		"a held set whose Jobs exist runs on":                {set: []set{two, ranOnce, isHeld}, jobs: []*batchv1.Job{runs}, irrelevant: true, written: true, want: summary{Create: []string{"js-w-1"}, Conditions: []string{"Held=False JobsExist"}, Events: []string{"Normal JobsExist"}}},
		"a finished set stays finished":                      {set: []set{two, completed}, irrelevant: true, want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}}},
		"a suspended set whose Jobs run is left alone":       {set: []set{two, isSuspended}, jobs: []*batchv1.Job{runs}, want: held},
		"while it is held, too":                              {set: []set{two, isSuspended, isHeld}, jobs: []*batchv1.Job{runs}, written: true, irrelevant: true, want: summary{Conditions: []string{heldTrue}}},
		"what its Jobs come to counts": {
			set: []set{with("w", 1), isSuspended, isHeld}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded)}, written: true, irrelevant: true,
			want: summary{Status: "Completed", Conditions: []string{"Held=False JobSetCompleted", "Completed=True AllJobsCompleted"}, Events: []string{"Normal AllJobsCompleted", "Normal JobSetCompleted"}},
		},
		"restarts that only Jobs know are taken over": {
			set: []set{two, ranOnce, restarted(1, 1), failurePolicy(9)}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("2")), jobNamed("w", 1, attempt("4"), ready)},
			want: summary{Restarts: 4, Counted: 4, Events: []string{"Normal RestartsTakenOver"}},
		},
		"no more are counted than may be": {
			set: []set{two, ranOnce, failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("5"))},
			want: summary{Restarts: 5, Counted: 3, Events: []string{"Normal RestartsTakenOver"}},
		},
		"in normal life Jobs that are ahead are current": {
			set: []set{two, ranOnce, failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("5")), jobNamed("w", 1)}, written: true,
		},
		"a failed set that was retried has not failed": {
			set: []set{two, hasFailed}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), ready)},
			want: summary{Restarts: 1, Events: []string{"Normal RestartsTakenOver"}},
		},
		"a suspended set whose Jobs are ahead and run is held at once": {
			set: []set{two, isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), ready)},
			want: summary{Restarts: 1, Conditions: held.Conditions, Events: []string{"Normal RestartsTakenOver", "Warning RestoredFromBackup"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(tc.set...), tc.jobs...)
			diff(t, "whether the restore matters", !tc.irrelevant, restoreAsked(o))
			if !tc.written && !tc.irrelevant {
				o.Restored = hostplan.Of(Restored{})
			}
			diff(t, "plan", tc.want, summarize(o, Decide(o)))
		})
	}
}

func TestRestartsOfSingleJobsAreTakenOver(t *testing.T) {
	o := observe(newSet(with("w", 2), ranOnce, failurePolicy(1)), jobNamed("w", 0), jobNamed("w", 1, label(jobsetv1alpha2.JobRestartAttemptKey, "2")))
	o.Restored = hostplan.Of(Restored{})
	diff(t, "whether the restore matters", true, restoreAsked(o))
	p := Decide(o)
	diff(t, "plan", summary{Events: []string{"Normal RestartsTakenOver"}}, summarize(o, p))
	diff(t, "restarts", []int32{0, 2}, p.Status.ReplicatedJobsStatus[0].JobRestarts)
	diff(t, "counted", []int32{0, 1}, p.Status.ReplicatedJobsStatus[0].JobRestartsCountTowardsMax)
	o.JobSet.Status = *p.Status
	diff(t, "whether it matters afterwards", false, restoreAsked(o))
}

// TestTakenOverAttempts: the numbers of attempts do not go down, though the attempts since the backup are not known.
func TestTakenOverAttempts(t *testing.T) {
	micro := ptr.To(metav1.NewMicroTime(before.Time))
	o := observe(newSet(with("w", 1), ranOnce, attempts(jobsetv1alpha2.Attempt{Number: 3, RequestTime: micro, CreateTime: micro})), jobNamed("w", 0, attempt("2"), ready))
	o.Restored, o.KeepAttempts = hostplan.Of(Restored{}), true
	status := Decide(o).Status
	if len(status.Attempts) != 2 || status.Attempts[0].EndTime == nil || status.Attempts[1].Number != 5 || status.Attempts[1].CreateTime == nil {
		t.Errorf("attempts %+v", status.Attempts)
	}
}

// TestHoldEndsTheAttempt: no attempt runs until the set is resumed. The message names the fix, and the counts are current.
func TestHoldEndsTheAttempt(t *testing.T) {
	o := observe(newSet(with("w", 2), ranOnce, attempts(jobsetv1alpha2.Attempt{Number: 3, RequestTime: ptr.To(metav1.NewMicroTime(before.Time))})))
	o.Restored, o.KeepAttempts = hostplan.Of(Restored{}), true
	status := Decide(o).Status
	if last := status.Attempts[0]; len(status.Attempts) != 1 || last.Outcome != jobsetv1alpha2.OutcomeSuspended {
		t.Errorf("attempts %+v", status.Attempts)
	}
	diff(t, "counts", []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}, status.ReplicatedJobsStatus)
	c := meta.FindStatusCondition(status.Conditions, jobsetv1alpha2.Held)
	if c == nil || !strings.Contains(c.Message, "`kubectl jobset resume js -n ns`") {
		t.Errorf("condition %+v", c)
	}
	o.JobSet.Status = *status
	o.Restored = hostplan.None[Restored]()
	if p := Decide(o); p.Status != nil || len(p.CreateJobs) > 0 || p.RequeueAfter != 0 {
		t.Errorf("the next decision: %+v", p)
	}
}
