// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestTakenNames(t *testing.T) {
	const first = "a job named js-w-0 already exists and does not belong to the jobset; the jobset creates its own once that job is deleted"
	const second = "a job named js-w-1 already exists and does not belong to the jobset; the jobset creates its own once that job is deleted"
	conflict := func(status metav1.ConditionStatus, reason, message string, at metav1.Time) *metav1.Condition {
		return &metav1.Condition{Type: "ChildNameConflict", Status: status, Reason: reason, Message: message, LastTransitionTime: at}
	}
	inConflict := withCondition(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, "NameConflict", first)
	for name, tc := range map[string]struct {
		set        []func(*jobsetv1alpha2.JobSet)
		jobs       []*batchv1.Job
		taken      []string
		want       *metav1.Condition
		wantEvents []Event
	}{
		"no name is taken": {},
		"the first taken name is reported, with one event": {
			taken: []string{"js-w-0", "js-w-1"}, want: conflict("True", "NameConflict", first, now),
			wantEvents: []Event{{Type: "Warning", Reason: "NameConflict", Note: first}},
		},
		"nothing is said again while the name is taken": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict}, taken: []string{"js-w-0"}, want: conflict("True", "NameConflict", first, before),
		},
		"nothing is said again when another name is free": {
			set:   []func(*jobsetv1alpha2.JobSet){withCondition(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, "NameConflict", second)},
			taken: []string{"js-w-1"}, want: conflict("True", "NameConflict", second, before),
		},
		"another name is reported when that one is free": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict}, jobs: []*batchv1.Job{jobNamed("w", 0)}, taken: []string{"js-w-1"},
			want:       conflict("True", "NameConflict", second, before),
			wantEvents: []Event{{Type: "Warning", Reason: "NameConflict", Note: second}},
		},
		"a name that is tried again without being taken proves nothing yet": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict}, want: conflict("True", "NameConflict", first, before),
		},
		"the conflict ends when all Jobs are there": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
			want:       conflict("False", "JobNamesFree", "the names of all jobs of the jobset are available", now),
			wantEvents: []Event{{Type: "Normal", Reason: "JobNamesFree", Note: "the names of all jobs of the jobset are available"}},
		},
		"the conflict ends with the set": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict, withAny}, jobs: []*batchv1.Job{jobNamed("w", 1, succeeded)},
			want: conflict("False", "JobNamesFree", "the names of all jobs of the jobset are available", now),
			wantEvents: []Event{
				{Type: "Normal", Reason: "AllJobsCompleted", Note: "jobset completed successfully"},
				{Type: "Normal", Reason: "JobNamesFree", Note: "the names of all jobs of the jobset are available"},
			},
		},
		"the conflict ends with the failure of the set": {
			set: []func(*jobsetv1alpha2.JobSet){inConflict}, jobs: []*batchv1.Job{jobNamed("w", 1, jobFailed)},
			want: conflict("False", "JobNamesFree", "the names of all jobs of the jobset are available", now),
			wantEvents: []Event{
				{Type: "Warning", Reason: "FailedJobs", Note: "jobset failed due to one or more job failures (first failed job: js-w-1)"},
				{Type: "Normal", Reason: "JobNamesFree", Note: "the names of all jobs of the jobset are available"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 2))...), tc.jobs...)
			decided := Decide(o)
			out := Finish(o, decided, taken(decided, tc.taken...))
			diff(t, "condition", tc.want, meta.FindStatusCondition(statusAfter(o, Plan{Status: out.Status}).Conditions, jobsetv1alpha2.ChildNameConflict))
			diff(t, "events", tc.wantEvents, out.Events)
			if out.DeferStatus == 0 {
				diff(t, "counters", statusAfter(o, decided).ReplicatedJobsStatus, statusAfter(o, Plan{Status: out.Status}).ReplicatedJobsStatus)
			}
		})
	}
}

func TestTakenNamesAreRetriedWithBackoff(t *testing.T) {
	since := func(ago time.Duration) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) {
			withCondition(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, "NameConflict", "m")(js)
			js.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago))
		}
	}
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		due  time.Duration
		want time.Duration
	}{
		"the first time soon":             {want: time.Second},
		"soon after the first time":       {set: []func(*jobsetv1alpha2.JobSet){since(0)}, want: time.Second},
		"later after some time":           {set: []func(*jobsetv1alpha2.JobSet){since(8 * time.Second)}, want: 8 * time.Second},
		"within bounds":                   {set: []func(*jobsetv1alpha2.JobSet){since(time.Hour)}, want: 30 * time.Second},
		"not later than what else is due": {set: []func(*jobsetv1alpha2.JobSet){since(time.Hour)}, due: 5 * time.Second, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{RequeueAfter: tc.due, CreateJobs: []*batchv1.Job{jobNamed("w", 0)}}
			out := Finish(observe(newSet(tc.set...)), p, taken(p, "js-w-0"))
			diff(t, "again after", tc.want, out.RequeueAfter)
		})
	}
}

// TestNameConflictOfFullPlans has two taken names, of which each plan tries one.
func TestNameConflictOfFullPlans(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs []*batchv1.Job
		more bool
		want string
	}{
		"the first name is not tried":           {more: true, want: "js-w-0"},
		"the first name is not wanted any more": {want: "js-w-1"},
		"the set has the Job of the first name": {jobs: []*batchv1.Job{jobNamed("w", 0)}, more: true, want: "js-w-1"},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 2), withCondition(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, "NameConflict", nameTaken("js-w-0")))
			p := Plan{CreateJobs: []*batchv1.Job{jobNamed("w", 1)}, More: tc.more}
			o := observe(js, tc.jobs...)
			status := statusAfter(o, Plan{Status: Finish(o, p, taken(p, "js-w-1")).Status})
			diff(t, "name", tc.want, takenName(meta.FindStatusCondition(status.Conditions, jobsetv1alpha2.ChildNameConflict).Message))
		})
	}
}

// taken are results of a plan whose Jobs of these names could not be created.
func taken(p Plan, names ...string) Results {
	r := Results{Creations: make([]Creation, len(p.CreateJobs))}
	for i, job := range p.CreateJobs {
		if r.Creations[i] = Created; slices.Contains(names, job.Name) {
			r.Creations[i] = NameTaken
		}
	}
	return r
}

// No watch shows that a Job which the set does not own is gone, so a name that became free during the sync must be tried again without one.
func TestFreedNamesAreTriedAgain(t *testing.T) {
	o := observe(newSet(with("w", 2)))
	decided := Decide(o)
	diff(t, "again after", time.Duration(0), Finish(o, decided, Results{Creations: []Creation{Created, Exists}}).RequeueAfter)
	diff(t, "again after a name was freed", RetryNamesAfter(o), Finish(o, decided, Results{Creations: []Creation{Created, NameFreed}}).RequeueAfter)
}
