// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// summary is a plan in words.
type summary struct {
	Create, Delete, Suspend, Resume []string
	Service                         bool
	Status                          string
	Conditions                      []string
	Events                          []string
	Restarts, Counted               int32
	DeleteJobSet                    bool
	After                           time.Duration
}

func summarize(o Observed, p Plan) summary {
	s := summary{
		Create: names(p.CreateJobs), Delete: refNames(p.DeleteJobs), Service: p.CreateService != nil,
		DeleteJobSet: p.DeleteJobSet, After: p.RequeueAfter,
	}
	for _, patch := range p.PatchJobs {
		switch {
		case ptr.Equal(patch.Suspend, ptr.To(true)):
			s.Suspend = append(s.Suspend, patch.Name)
		case ptr.Equal(patch.Suspend, ptr.To(false)):
			s.Resume = append(s.Resume, patch.Name)
		}
	}
	status := p.Status
	if status == nil {
		status = &o.JobSet.Status
	}
	s.Status, s.Restarts, s.Counted = status.TerminalState, status.Restarts, status.RestartsCountTowardsMax
	for _, c := range status.Conditions {
		s.Conditions = append(s.Conditions, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	for _, e := range p.Events {
		s.Events = append(s.Events, e.Type+" "+e.Reason)
	}
	return s
}

func TestDecide(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	restarting := withCondition(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m")
	suspendedCondition := withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")
	two := with("w", 2)
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		// bare leaves the Service out.
		bare bool
		want summary
	}{
		"a new set gets its Service and its Jobs": {
			set: []set{with("a", 1), two}, bare: true,
			want: summary{Service: true, Create: []string{"js-a-0", "js-w-0", "js-w-1"}},
		},
		"a set of another controller is left alone": {
			set: []set{two, ofAnother}, bare: true,
		},
		"a finished set of another controller is deleted when its time is over, and nothing else is done": {
			set: []set{two, completed, withTTL(3600), ofAnother}, jobs: []*batchv1.Job{jobNamed("w", 0)}, bare: true,
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, DeleteJobSet: true},
		},
		"a finished set of another controller waits for its time": {
			set: []set{two, completed, withTTL(3660), ofAnother}, bare: true,
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, After: time.Minute},
		},
		"a set that names this controller is run": {
			set:  []set{two, func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("jobset.sigs.k8s.io/jobset-controller") }},
			want: summary{Create: []string{"js-w-0", "js-w-1"}},
		},
		"a set that is being deleted is left alone": {
			set: []set{two, func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &before }}, bare: true,
		},
		"a Job that was deleted from outside is created again": {
			set: []set{two}, jobs: []*batchv1.Job{jobNamed("w", 1)},
			want: summary{Create: []string{"js-w-0"}},
		},
		"the name of a Job that is being deleted is not free": {
			set: []set{two}, jobs: []*batchv1.Job{jobNamed("w", 0, terminating), jobNamed("w", 1)},
		},
		"success is a status write and nothing else": {
			set: []set{two}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}, bare: true,
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, Events: []string{"Normal AllJobsCompleted"}},
		},
		"success ends a restart too": {
			set: []set{two, restarting, withAny}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1)},
			want: summary{
				Status: "Completed", Conditions: []string{"RestartingJobSet=False JobSetCompleted", "Completed=True AllJobsCompleted"},
				Events: []string{"Normal AllJobsCompleted", "Normal JobSetCompleted"},
			},
		},
		"failure without a policy is a status write and nothing else": {
			set: []set{two}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, bare: true,
			want: summary{Status: "Failed", Conditions: []string{"Failed=True FailedJobs"}, Events: []string{"Warning FailedJobs"}},
		},
		"failure wins over success": {
			set: []set{two, withAny}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed), jobNamed("w", 1, succeeded)},
			want: summary{Status: "Failed", Conditions: []string{"Failed=True FailedJobs"}, Events: []string{"Warning FailedJobs"}},
		},
		"failure ends a restart too": {
			set: []set{two, restarting}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)},
			want: summary{
				Status: "Failed", Conditions: []string{"RestartingJobSet=False JobSetFailed", "Failed=True FailedJobs"},
				Events: []string{"Warning FailedJobs", "Normal JobSetFailed"},
			},
		},
		"a restart is a status write and nothing else": {
			set: []set{two, failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, bare: true,
			want: summary{
				Restarts: 1, Counted: 1, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"},
				Events: []string{"Warning DefaultFailurePolicy", "Warning RestartJobSetFailurePolicyAction"},
			},
		},
		"an uncounted restart leaves the budget": {
			set:  []set{two, failurePolicy(1, jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts})},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)},
			want: summary{
				Restarts: 1, Conditions: []string{"RestartingJobSet=True FailurePolicy_r"},
				Events: []string{"Warning FailurePolicy_r", "Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"},
			},
		},
		"a restart while restarting still reports itself": {
			set: []set{two, failurePolicy(3), restarted(1, 1), withCondition(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy",
				"applying RestartJobSet failure policy action (first failed job: js-w-0)")},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed, attempt("1"))},
			want: summary{
				Restarts: 2, Counted: 2, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"},
				Events: []string{"Warning RestartJobSetFailurePolicyAction"},
			},
		},
		"after a restart the Jobs of the earlier attempt go, and free names are taken": {
			set:  []set{two, failurePolicy(1), restarted(1, 1), restarting},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)},
			want: summary{
				Restarts: 1, Counted: 1, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"},
				Delete: []string{"js-w-0"}, Create: []string{"js-w-1"},
			},
		},
		"a Job of the earlier attempt is deleted once": {
			set:  []set{two, failurePolicy(1), restarted(1, 1)},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed, terminating), jobNamed("w", 1, attempt("1"))},
			want: summary{Restarts: 1, Counted: 1},
		},
		"BlockingRecreate creates nothing while a Job of the earlier attempt exists": {
			set:  []set{two, failurePolicy(1), blockingRecreate, restarted(1, 1)},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed, terminating)},
			want: summary{Restarts: 1, Counted: 1},
		},
		"BlockingRecreate creates all when the last Job of the earlier attempt is gone": {
			set:  []set{two, failurePolicy(1), blockingRecreate, restarted(1, 1)},
			want: summary{Restarts: 1, Counted: 1, Create: []string{"js-w-0", "js-w-1"}},
		},
		"a restart has ended when all Jobs are ready": {
			set:  []set{two, failurePolicy(1), restarted(1, 1), restarting},
			jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), ready), jobNamed("w", 1, attempt("1"), succeeded)},
			want: summary{
				Restarts: 1, Counted: 1, Conditions: []string{"RestartingJobSet=False JobsReady"}, Events: []string{"Normal JobsReady"},
			},
		},
		"a failure while suspended still counts": {
			set: []set{two, isSuspended, failurePolicy(0), suspendedCondition}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)},
			want: summary{
				Status: "Failed", Conditions: []string{"Suspended=True SuspendedJobs", "Failed=True ReachedMaxRestarts"},
				Events: []string{"Warning ReachedMaxRestarts"},
			},
		},
		"a finished set keeps its finished Jobs only": {
			set: []set{two, completed}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, ready)}, bare: true,
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, Delete: []string{"js-w-1"}},
		},
		"a finished set stays finished when a Job fails": {
			set: []set{two, completed, failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 1, jobFailed)},
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}},
		},
		"a finished set is deleted when its time is over": {
			set:  []set{two, completed, withTTL(3600)},
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, DeleteJobSet: true},
		},
		"a finished set waits for its time": {
			set:  []set{two, completed, withTTL(3660)},
			want: summary{Status: "Completed", Conditions: []string{"Completed=True AllJobsCompleted"}, After: time.Minute},
		},
		"a set that runs does not wait for its time": {
			set: []set{two, withTTL(1)}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
		},
		"a suspended set creates suspended Jobs and its Service": {
			set: []set{two, isSuspended}, bare: true,
			want: summary{
				Service: true, Create: []string{"js-w-0", "js-w-1"},
				Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"},
			},
		},
		"suspending suspends what is active": {
			set: []set{two, with("a", 1), isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, jobIsSuspended), jobNamed("a", 0, succeeded)},
			want: summary{Suspend: []string{"js-w-0"}},
		},
		"suspending ends a restart": {
			set: []set{two, isSuspended, restarting}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)},
			want: summary{
				Conditions: []string{"RestartingJobSet=False JobSetSuspended", "Suspended=True SuspendedJobs"},
				Events:     []string{"Normal SuspendedJobs", "Normal JobSetSuspended"},
			},
		},
		"resuming is said to have ended when no Job is suspended any more": {
			set: []set{two, suspendedCondition}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, jobIsSuspended)},
			want: summary{Resume: []string{"js-w-1"}, Conditions: []string{"Suspended=True SuspendedJobs"}},
		},
		"a resumed set says so": {
			set: []set{two, suspendedCondition}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
			want: summary{Conditions: []string{"Suspended=False ResumeJobs"}, Events: []string{"Normal ResumeJobs"}},
		},
		"a set that was never suspended says nothing about it": {
			set: []set{two}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
		},
		"a set without Jobs never ends": {
			set: []set{with("none", 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(tc.set...), tc.jobs...)
			o.ServiceExists = !tc.bare
			diff(t, "plan", tc.want, summarize(o, Decide(o)))
		})
	}
}

func ofAnother(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }

func withAny(js *jobsetv1alpha2.JobSet) {
	js.Spec.SuccessPolicy.Operator = jobsetv1alpha2.OperatorAny
}

func TestDecideWritesNoStatusThatIsStoredAlready(t *testing.T) {
	o := observe(newSet(with("w", 1)), jobNamed("w", 0, ready))
	p := Decide(o)
	want := &jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 1, Active: 1}}}
	diff(t, "first status", want, p.Status)
	o.JobSet.Status = *p.Status
	diff(t, "second plan", Plan{}, Decide(o))
}

func TestDecideNamesJobsByIncarnation(t *testing.T) {
	js := newSet(with("w", 2), isSuspended, failurePolicy(1), restarted(1, 1))
	o := observe(js, jobNamed("w", 0), jobNamed("w", 1, attempt("1")))
	p := Decide(o)
	diff(t, "deletions", []JobRef{{Name: "js-w-0", UID: "uid-js-w-0"}}, p.DeleteJobs)
	diff(t, "patches", []JobPatch{{JobRef: JobRef{Name: "js-w-1", UID: "uid-js-w-1"}, ResourceVersion: "7", Suspend: ptr.To(true)}}, p.PatchJobs)
}
