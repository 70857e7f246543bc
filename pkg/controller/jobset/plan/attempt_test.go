// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// at returns the time so many seconds after some time ago.
func at(second int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(before.Add(time.Duration(second) * time.Second)))
}

// attemptNow is the time of the observation in an attempt.
var attemptNow = ptr.To(metav1.NewMicroTime(now.Time))

func createdBefore(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = before }

// withAttempts puts attempts into the status.
func withAttempts(attempts ...jobsetv1alpha2.Attempt) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts = append(js.Status.Attempts, attempts...) }
}

// begun is an attempt that began some time ago.
func begun(number int32, trigger jobsetv1alpha2.AttemptTrigger, change ...func(*jobsetv1alpha2.Attempt)) jobsetv1alpha2.Attempt {
	a := jobsetv1alpha2.Attempt{Number: number, Trigger: trigger, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: at(0)}
	for _, f := range change {
		f(&a)
	}
	return a
}

func created(second int) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) { a.CreateTime = at(second) }
}

func readySince(second int) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) { a.ReadyTime = at(second) }
}

func ended(when *metav1.MicroTime, outcome jobsetv1alpha2.AttemptOutcome, reason string) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) { a.EndTime, a.Outcome, a.EndReason = when, outcome, reason }
}

func requestedNow(a *jobsetv1alpha2.Attempt) { a.RequestTime = attemptNow }
func createdNow(a *jobsetv1alpha2.Attempt)   { a.CreateTime = attemptNow }
func readyNow(a *jobsetv1alpha2.Attempt)     { a.ReadyTime = attemptNow }

func becauseOf(rule, reason string) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) { a.Rule, a.Reason = rule, reason }
}

func byUser(name string) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) { a.User = name }
}

const (
	byPolicy      = "applying RestartJobSet failure policy action (first failed job: js-w-0)"
	withoutPolicy = "jobset failed due to one or more job failures (first failed job: js-w-0)"
)

func TestAttempts(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	type attempts = []jobsetv1alpha2.Attempt
	type owned = []*batchv1.Job
	const (
		start, policy, requested = jobsetv1alpha2.TriggerStart, jobsetv1alpha2.TriggerFailurePolicy, jobsetv1alpha2.TriggerRequested
		resume, preemption       = jobsetv1alpha2.TriggerResume, jobsetv1alpha2.TriggerPreemption
		restarted1, stopped      = jobsetv1alpha2.OutcomeRestarted, jobsetv1alpha2.OutcomeSuspended
		isFailed, isCompleted    = jobsetv1alpha2.OutcomeFailed, jobsetv1alpha2.OutcomeCompleted
	)
	runs := begun(1, start, created(1))
	byAlice := func(a *jobsetv1alpha2.Attempt) { a.EndUser = "alice" }
	wasSuspended := withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")
	inQueue := func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} }
	both := func(change ...func(*batchv1.Job)) owned {
		return owned{jobNamed("w", 0, change...), jobNamed("w", 1, change...)}
	}
	for name, tc := range map[string]struct {
		set    []set
		gates  gates.Gates
		jobs   owned
		want   attempts
		readyM int64
	}{
		"a new set begins when it was created": {
			set: []set{createdBefore}, want: attempts{begun(1, start)}},
		"a set that was created suspended begins when it may run": {
			set: []set{createdBefore, wasSuspended}, want: attempts{begun(1, start, requestedNow)}},
		"a suspended set has none": {set: []set{isSuspended}, jobs: both(jobIsSuspended)},
		"all Jobs exist": {
			set: []set{withAttempts(begun(1, start))}, jobs: both(), want: attempts{begun(1, start, createdNow)}},
		"a Job that is being deleted does not exist": {
			set: []set{withAttempts(begun(1, start))}, jobs: owned{jobNamed("w", 0), jobNamed("w", 1, terminating)}, want: attempts{begun(1, start)}},
		"a Job of an earlier attempt does not exist": {
			set:  []set{withAttempts(begun(2, requested)), restarted(1, 0)},
			jobs: owned{jobNamed("w", 0), jobNamed("w", 1, attempt("1"))}, want: attempts{begun(2, requested)}},
		"all Jobs are ready or have succeeded": {
			set: []set{withAttempts(runs)}, jobs: owned{jobNamed("w", 0, ready), jobNamed("w", 1, succeeded)}, want: attempts{begun(1, start, created(1), readyNow)}},
		"times are written once": {
			set: []set{withAttempts(begun(1, start, created(1), readySince(2)))}, jobs: both(ready), want: attempts{begun(1, start, created(1), readySince(2))}},
		"times do not go backwards when clocks differ": {
			set:  []set{withAttempts(begun(1, start, func(a *jobsetv1alpha2.Attempt) { a.RequestTime = at(9999) }))},
			jobs: both(), want: attempts{begun(1, start, created(9999), func(a *jobsetv1alpha2.Attempt) { a.RequestTime = at(9999) })}},
		"a completed set": {
			set: []set{withAttempts(begun(1, start, created(1), readySince(3590)))}, jobs: both(succeeded), readyM: 10_000,
			want: attempts{begun(1, start, created(1), readySince(3590), ended(attemptNow, isCompleted, "jobset completed successfully"))}},
		"a set that ran so fast that nothing was seen of it": {
			set:  []set{createdBefore},
			jobs: both(succeeded), want: attempts{begun(1, start, createdNow, readyNow, ended(attemptNow, isCompleted, "jobset completed successfully"))}},
		"a failed set": {
			set: []set{withAttempts(runs)}, jobs: owned{jobNamed("w", 0, jobFailed), jobNamed("w", 1)},
			want: attempts{begun(1, start, created(1), ended(attemptNow, isFailed, withoutPolicy))}},
		"a restart by the failure policy": {
			set: []set{withAttempts(runs), failurePolicy(1)}, jobs: owned{jobNamed("w", 0, jobFailed), jobNamed("w", 1)},
			want: attempts{
				begun(1, start, created(1), ended(attemptNow, restarted1, byPolicy)), begun(2, policy, requestedNow, becauseOf("", byPolicy))}},
		"a restart by a rule": {
			set:  []set{withAttempts(runs), failurePolicy(1, jobsetv1alpha2.FailurePolicyRule{Name: "host", Action: jobsetv1alpha2.RestartJobSet})},
			jobs: owned{jobNamed("w", 0, jobFailed), jobNamed("w", 1)},
			want: attempts{
				begun(1, start, created(1), ended(attemptNow, restarted1, byPolicy)), begun(2, policy, requestedNow, becauseOf("host", byPolicy))}},
		"a restart of a single Job": {
			set:   []set{withAttempts(runs), failurePolicy(1, jobsetv1alpha2.FailurePolicyRule{Name: "one", Action: jobsetv1alpha2.RestartJob})},
			gates: gates.Gates{RestartJob: true}, jobs: owned{jobNamed("w", 0), jobNamed("w", 1, jobFailed)},
			want: attempts{
				begun(1, start, created(1), ended(attemptNow, restarted1, "applying RestartJob failure policy action (first failed job: js-w-1)")),
				begun(2, policy, requestedNow, becauseOf("one", "applying RestartJob failure policy action (first failed job: js-w-1)"), func(a *jobsetv1alpha2.Attempt) {
					a.Scope, a.ReplicatedJob, a.JobIndex = jobsetv1alpha2.ScopeJob, "w", ptr.To[int32](1)
				})}},
		"a set that is being suspended by a change of its spec still runs": {
			set: []set{withAttempts(runs), isSuspended}, jobs: owned{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1)}, want: attempts{runs}},
		"a set suspended by a change of its spec": {
			set: []set{withAttempts(runs), isSuspended}, jobs: both(jobIsSuspended),
			want: attempts{begun(1, start, created(1), ended(attemptNow, stopped, "jobset is suspended"))}},
		"a set suspended through the action stays as the server has recorded it": {
			set: []set{withAttempts(begun(1, start, ended(at(5), stopped, "because"), byAlice)), isSuspended}, jobs: both(),
			want: attempts{begun(1, start, ended(at(5), stopped, "because"), byAlice)}},
		"a Job fails in a set that has just been suspended": {
			set: []set{withAttempts(runs), failurePolicy(1), isSuspended}, jobs: owned{jobNamed("w", 0, jobFailed), jobNamed("w", 1)},
			want: attempts{begun(1, start, created(1), ended(attemptNow, stopped, "jobset is suspended"))}},
		"a resumed set, whose Jobs exist": {
			set: []set{withAttempts(begun(1, start, ended(at(5), stopped, ""))), wasSuspended}, jobs: both(jobIsSuspended),
			want: attempts{begun(1, start, ended(at(5), stopped, "")), begun(2, resume, requestedNow, createdNow)}},
		"a set that a queue stopped and admits again": {
			set:  []set{withAttempts(begun(1, start, ended(at(5), stopped, ""))), wasSuspended, inQueue},
			want: attempts{begun(1, start, ended(at(5), stopped, "")), begun(2, preemption, requestedNow)}},
		"a set in a queue that a user stopped": {
			set:  []set{withAttempts(begun(1, start, ended(at(5), stopped, ""), byAlice)), wasSuspended, inQueue},
			want: attempts{begun(1, start, ended(at(5), stopped, ""), byAlice), begun(2, resume, requestedNow)}},
		"a set that another controller owns, stopped and started again": {
			set: []set{withAttempts(begun(1, start, ended(at(5), stopped, ""))), wasSuspended, func(js *jobsetv1alpha2.JobSet) {
				js.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Controller: ptr.To(true)}}
			}},
			want: attempts{begun(1, start, ended(at(5), stopped, "")), begun(2, preemption, requestedNow)}},
		"a set that ran before anybody kept its history": {
			set: []set{createdBefore, restarted(3, 3), restartingFor("js-w-0")}, jobs: both(attempt("3")),
			want: attempts{begun(4, policy, requestedNow, createdNow, becauseOf("", byPolicy))}},
		"a set that finished before anybody kept its history": {
			set: []set{createdBefore, restarted(3, 3), completed}, jobs: both(attempt("3"), succeeded)},
		"a set that finished while nobody kept its history": {
			set: []set{completed, withAttempts(runs)}, jobs: both(succeeded),
			want: attempts{begun(1, start, created(1), ended(attemptNow, isCompleted, "jobset completed successfully"))}},
		"a set that ended through the action stays as the server has recorded it": {
			set:  []set{withAttempts(begun(1, start, ended(at(5), jobsetv1alpha2.OutcomeCancelled, "because"))), withCondition(jobsetv1alpha2.JobSetFailed, "True", "Cancelled", "cancelled by alice")},
			jobs: both(), want: attempts{begun(1, start, ended(at(5), jobsetv1alpha2.OutcomeCancelled, "because"))}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 2))...), tc.jobs...)
			o.Gates = tc.gates
			o.KeepAttempts = true
			p := Decide(o)
			got := &o.JobSet.Status
			if p.Status != nil {
				got = p.Status
			}
			diff(t, "attempts", tc.want, got.Attempts)
			diff(t, "time in which all was ready", tc.readyM, got.ReadyMilliseconds)
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	set := newSet(with("w", 1), failurePolicy(99), func(js *jobsetv1alpha2.JobSet) {
		for n := range int32(10) {
			withAttempts(begun(n+3, jobsetv1alpha2.TriggerFailurePolicy, ended(at(1), jobsetv1alpha2.OutcomeRestarted, "")))(js)
		}
		js.Status.Attempts[9].EndTime = nil
	})
	o := observe(set, jobNamed("w", 0, failedWith("", "", 1), func(job *batchv1.Job) { job.Name = "js-w-0" + strings.Repeat("é", 2000) }))
	o.KeepAttempts = true
	got := Decide(o).Status.Attempts
	diff(t, "number of attempts", 10, len(got))
	diff(t, "first and last", []int32{4, 13}, []int32{got[0].Number, got[9].Number})
	diff(t, "length of reasons", []int{1024, 1024}, []int{len([]rune(got[8].EndReason)), len([]rune(got[9].Reason))})
}

func TestServerWithoutHistoryGetsNoAttempts(t *testing.T) {
	o := observe(newSet(with("w", 1)), jobNamed("w", 0, jobFailed))
	diff(t, "attempts", []jobsetv1alpha2.Attempt(nil), Decide(o).Status.Attempts)
	if job := causeAsked(o); job != nil {
		t.Errorf("the cause is looked for: %+v", job)
	}
}

func TestAttemptsOfSetsThatRestartInPlace(t *testing.T) {
	a, b := jobNamed("w", 0, bothReady), jobNamed("w", 1, bothReady)
	look := func(set *jobsetv1alpha2.JobSet, pods ...string) *jobsetv1alpha2.JobSetStatus {
		o := observe(set, a, b)
		o.KeepAttempts, o.Gates.InPlaceRestart = true, true
		var all []inPlacePod
		for i, pod := range pods {
			all = append(all, podOf([]*batchv1.Job{a, a, b, b}[i], pod))
		}
		o.InPlace = hostplan.Of(inPlaceOf(all...))
		if p := Decide(o); p.Status != nil {
			return p.Status
		}
		return &set.Status
	}
	set := inPlaceSet(createdBefore, withAttempts(begun(1, jobsetv1alpha2.TriggerStart, created(1), readySince(3540))))
	set.Status.CurrentInPlaceRestartAttempt = ptr.To[int32](0)
	const why = "pods restart in place"
	first := begun(1, jobsetv1alpha2.TriggerStart, created(1), readySince(3540), ended(attemptNow, jobsetv1alpha2.OutcomeRestarted, why))
	second := begun(2, jobsetv1alpha2.TriggerFailurePolicy, requestedNow, createdNow, becauseOf("", why))

	set.Status = *look(set, "0", "1", "0", "0")
	diff(t, "attempts when one pod restarts", []jobsetv1alpha2.Attempt{first, second}, set.Status.Attempts)
	diff(t, "time in which all was ready", int64(60_000), set.Status.ReadyMilliseconds)
	set.Status = *look(set, "1", "1", "0", "0")
	diff(t, "attempts while the pods restart", []jobsetv1alpha2.Attempt{first, second}, set.Status.Attempts)
	set.Status = *look(set, "1", "1", "1", "1")
	readyNow(&second)
	diff(t, "attempts when all pods have restarted", []jobsetv1alpha2.Attempt{first, second}, set.Status.Attempts)
}

func bothReady(job *batchv1.Job) {
	job.Spec.Parallelism = ptr.To[int32](2)
	job.Status.Active, job.Status.Ready = 2, ptr.To[int32](2)
}

func TestJobsRecreatedIsReported(t *testing.T) {
	type change = func(*jobsetv1alpha2.Attempt)
	const requested = jobsetv1alpha2.TriggerRequested
	one := func(scope jobsetv1alpha2.AttemptScope, index *int32) change {
		return func(a *jobsetv1alpha2.Attempt) { a.Scope, a.ReplicatedJob, a.JobIndex = scope, "w", index }
	}
	requestedAt := func(second int) change {
		return func(a *jobsetv1alpha2.Attempt) { a.RequestTime = at(second) }
	}
	for name, tc := range map[string]struct {
		attempt jobsetv1alpha2.Attempt
		want    string
	}{
		"a restart on request":     {begun(3, requested, requestedAt(3598), byUser("alice")), "all 4 jobs of attempt 3 were recreated 2s after the restart requested by alice"},
		"a restart by nobody":      {begun(3, requested, requestedAt(3600)), "all 4 jobs of attempt 3 were recreated less than 1s after the restart requested"},
		"a retry":                  {begun(3, jobsetv1alpha2.TriggerRetry, byUser("bob")), "all 4 jobs of attempt 3 were recreated 60m after the retry requested by bob"},
		"the failure policy":       {begun(2, jobsetv1alpha2.TriggerFailurePolicy), "all 4 jobs of attempt 2 were recreated 60m after the restart by the failure policy"},
		"a rule":                   {begun(2, jobsetv1alpha2.TriggerFailurePolicy, becauseOf("host", "")), "all 4 jobs of attempt 2 were recreated 60m after the restart by rule host of the failure policy"},
		"one Job":                  {begun(3, requested, one(jobsetv1alpha2.ScopeJob, ptr.To[int32](2)), byUser("al")), "job js-w-2 of attempt 3 was recreated 60m after the restart requested by al"},
		"the Jobs of one kind":     {begun(3, requested, one(jobsetv1alpha2.ScopeReplicatedJob, nil), byUser("al")), "all 3 jobs of replicatedJob w of attempt 3 were recreated 60m after the restart requested by al"},
		"a start is no recreation": {begun(1, jobsetv1alpha2.TriggerStart), ""},
		"nor is a resume":          {begun(1, jobsetv1alpha2.TriggerResume), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(with("w", 3), with("a", 1), withAttempts(tc.attempt)), jobNamed("w", 0), jobNamed("w", 1), jobNamed("w", 2), jobNamed("a", 0))
			o.KeepAttempts = true
			var want []Event
			if tc.want != "" {
				want = []Event{{Type: corev1.EventTypeNormal, Reason: "JobsRecreated", Note: tc.want}}
			}
			diff(t, "events", want, Decide(o).Events)
		})
	}
}
