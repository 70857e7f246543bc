// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func executed(times int32) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Status.ExecutionAttempts = ptr.To(times) }
}

// startedAgo is a set whose execution began so many seconds ago.
func startedAgo(seconds int) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)))
	}
}

func deadlineOf(seconds int64) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To(seconds) }
}

var (
	wasSuspended = withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")
	wasResumed   = withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionFalse, "ResumeJobs", "jobset is resumed")
)

func TestExecutionsAreCounted(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	for name, tc := range map[string]struct {
		off  bool
		set  []set
		jobs []*batchv1.Job
		want *int32
		// wantAlone tells that the count is all that is done.
		wantAlone bool
	}{
		"the first one has the number 0, stored before any Job exists": {want: ptr.To[int32](0), wantAlone: true},
		"a set that ran before anybody counted has had its restarts": {
			set: []set{failurePolicy(3), restarted(2, 1)}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("2"))}, want: ptr.To[int32](2), wantAlone: true},
		"a suspended set has none":                               {set: []set{isSuspended}},
		"a set created suspended has its first one when resumed": {set: []set{wasSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended)}, want: ptr.To[int32](0), wantAlone: true},
		"resuming begins another one, before any Job is resumed": {
			set: []set{executed(0), wasSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended)}, want: ptr.To[int32](1), wantAlone: true},
		"resuming is counted once":            {set: []set{executed(1), wasResumed}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended)}, want: ptr.To[int32](1)},
		"suspending counts nothing":           {set: []set{executed(1), isSuspended, wasResumed}, jobs: []*batchv1.Job{jobNamed("w", 0)}, want: ptr.To[int32](1)},
		"a restart of the set begins another": {set: []set{executed(1), failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, want: ptr.To[int32](2), wantAlone: true},
		"a restart before anybody counted":    {set: []set{failurePolicy(3), restarted(2, 1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed, attempt("2"))}, want: ptr.To[int32](3), wantAlone: true},
		"failing for good begins none":        {set: []set{executed(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, want: ptr.To[int32](1), wantAlone: true},
		"without the feature none is counted": {off: true},
		"without the feature the count stays": {off: true, set: []set{executed(3), wasSuspended, failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, want: ptr.To[int32](3), wantAlone: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 1))...), tc.jobs...)
			o.Gates.ExecutionAttemptsTracking = !tc.off
			p := Decide(o)
			diff(t, "executions", tc.want, statusAfter(o, p).ExecutionAttempts)
			diff(t, "alone", tc.wantAlone, len(p.CreateJobs)+len(p.PatchJobs)+len(p.DeleteJobs) == 0)
		})
	}
}

func statusAfter(o Observed, p Plan) *jobsetv1alpha2.JobSetStatus {
	if p.Status == nil {
		return &o.JobSet.Status
	}
	return p.Status
}

func TestResumeCountEndsTheSuspension(t *testing.T) {
	o := observe(newSet(with("w", 1), executed(0), wasSuspended), jobNamed("w", 0, jobIsSuspended))
	o.Gates.ExecutionAttemptsTracking = true
	want := summary{Conditions: []string{"Suspended=False ResumeJobs"}, Events: []string{"Normal ResumeJobs"}}
	diff(t, "first plan", want, summarize(o, Decide(o)))
	o.JobSet.Status = *Decide(o).Status
	diff(t, "Jobs resumed by the second plan", []string{"js-w-0"}, summarize(o, Decide(o)).Resume)
}

func TestJobsHaveTheExecutionAttempt(t *testing.T) {
	keys := func(annotations map[string]string) string { return annotations["jobset.sigs.k8s.io/execution-attempt"] }
	old := jobNamed("w", 1, jobIsSuspended, func(job *batchv1.Job) {
		job.Spec.Template.Annotations = map[string]string{"jobset.sigs.k8s.io/execution-attempt": "2"}
	})
	o := observe(newSet(with("w", 2), executed(3)), old)
	for gate, want := range map[bool][]string{true: {"3", "3", "3", "3"}, false: {"", "", "", ""}} {
		o.Gates.ExecutionAttemptsTracking = gate
		p := Decide(o)
		created, patch := p.CreateJobs[0], p.PatchJobs[0]
		got := []string{keys(created.Annotations), keys(created.Spec.Template.Annotations), keys(patch.Annotations), ""}
		if patch.Directives != nil {
			got[3] = keys(patch.Directives.Annotations)
		}
		diff(t, "annotations of a new Job and of a resumed one", want, got)
	}
}

func TestDeadline(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	runs := []*batchv1.Job{jobNamed("w", 0, ready)}
	begin := func(seconds int) *metav1.Time {
		return ptr.To(metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)))
	}
	exceeded := summary{Status: "Failed", Conditions: []string{"Failed=True DeadlineExceeded"}, Events: []string{"Warning DeadlineExceeded"}}
	for name, tc := range map[string]struct {
		off       bool
		set       []set
		jobs      []*batchv1.Job
		want      summary
		wantStart *metav1.Time
	}{
		"the clock starts with the set":           {set: []set{deadlineOf(60)}, jobs: runs, wantStart: begin(0)},
		"the clock starts without a deadline too": {jobs: runs, wantStart: begin(0)},
		"a set has the rest of its time":          {set: []set{deadlineOf(60), startedAgo(20)}, jobs: runs, wantStart: begin(20), want: summary{After: 40 * time.Second}},
		"a set fails when its time is over":       {set: []set{deadlineOf(60), startedAgo(60)}, jobs: runs, wantStart: begin(60), want: exceeded},
		"a deadline beyond all time is none":      {set: []set{deadlineOf(math.MaxInt64), startedAgo(60)}, jobs: runs, wantStart: begin(60)},
		"success comes first": {
			set: []set{deadlineOf(60), startedAgo(99)}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded)}, wantStart: begin(99),
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, Events: []string{"Normal AllJobsCompleted"}}},
		"the deadline comes before the failure policy": {
			set: []set{deadlineOf(60), startedAgo(99), failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, wantStart: begin(99), want: exceeded},
		"a suspended set has no clock": {
			set: []set{deadlineOf(60), startedAgo(99), isSuspended, wasSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended)},
			want: summary{Conditions: []string{"Suspended=True SuspendedJobs"}}},
		"the clock starts again when the set is resumed": {
			set: []set{deadlineOf(60), wasSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended)}, wantStart: begin(0),
			want: summary{Resume: []string{"js-w-0"}, Conditions: []string{"Suspended=True SuspendedJobs"}}},
		"the clock starts again when the set is restarted": {
			set: []set{deadlineOf(60), startedAgo(30), failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, wantStart: begin(0),
			want: summary{Restarts: 1, Counted: 1, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"},
				Events: []string{"Warning DefaultFailurePolicy", "Warning RestartJobSetFailurePolicyAction"}}},
		"the clock goes on when a single Job is restarted": {
			set:  []set{deadlineOf(60), startedAgo(30), failurePolicy(1, jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: jobsetv1alpha2.RestartJob})},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, wantStart: begin(30), want: summary{Events: []string{"Warning RestartJobFailurePolicyAction"}}},
		"a finished set keeps its time": {
			set: []set{deadlineOf(60), startedAgo(99), completed}, wantStart: begin(99),
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}}},
		"without the feature there is no clock": {off: true, set: []set{deadlineOf(60), startedAgo(99)}, jobs: runs},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 1))...), tc.jobs...)
			o.Gates.JobSetActiveDeadlineSeconds, o.Gates.RestartJob = !tc.off, true
			p := Decide(o)
			diff(t, "plan", tc.want, summarize(o, p))
			diff(t, "start", tc.wantStart, statusAfter(o, p).StartTime)
		})
	}
}

// TestDeadlineIsDueOnceItsClockIsStored has a clock that starts with a status that may not be stored: until it is, each decision starts the
// clock again, and its deadline would take the place of the pause after a status that is refused.
func TestDeadlineIsDueOnceItsClockIsStored(t *testing.T) {
	for name, tc := range map[string]struct {
		set                []func(*jobsetv1alpha2.JobSet)
		wantLook, wantActs time.Duration
	}{
		"a clock that starts":    {set: []func(*jobsetv1alpha2.JobSet){deadlineOf(60)}},
		"a clock that is stored": {set: []func(*jobsetv1alpha2.JobSet){deadlineOf(60), startedAgo(20)}, wantLook: 40 * time.Second, wantActs: 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 1))...), jobNamed("w", 0))
			o.Gates.JobSetActiveDeadlineSeconds = true
			p := Decide(o)
			diff(t, "the next look", tc.wantLook, p.RequeueAfter)
			diff(t, "the deadline that acts", tc.wantActs, p.ActsAfter)
		})
	}
}
