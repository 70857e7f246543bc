// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestDeferrableStatuses(t *testing.T) {
	counts := func(ready, active, succeeded, failed, suspended int32) []jobsetv1alpha2.ReplicatedJobStatus {
		return []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: ready, Active: active, Succeeded: succeeded, Failed: failed, Suspended: suspended}}
	}
	at := metav1.NewMicroTime(now.Time)
	history := func(a jobsetv1alpha2.Attempt) []jobsetv1alpha2.Attempt { return []jobsetv1alpha2.Attempt{a} }
	started := jobsetv1alpha2.Attempt{Number: 1, RequestTime: &at}
	created, ready, ended := started, started, started
	created.CreateTime, ready.ReadyTime, ended.EndTime = &at, &at, &at
	for name, tc := range map[string]struct {
		stored, next jobsetv1alpha2.JobSetStatus
		suspended    bool
		want         bool
	}{
		"one more Job is ready":                    {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 2, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(2, 3, 0, 0, 0)}, want: true},
		"one Job is ready no more":                 {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(3, 4, 0, 0, 0)}, want: true},
		"some of the Jobs have succeeded":          {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(2, 2, 2, 0, 0)}, want: true},
		"all Jobs are there":                       {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(created)}, want: true},
		"the last Job is ready":                    {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(3, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}},
		"the last Job is ready, others have ended": {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(2, 3, 1, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(3, 3, 1, 0, 0)}, want: true},
		"the last Job has succeeded":               {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 3, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 4, 0, 0)}},
		"a Job has failed":                         {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 1, 0)}},
		"the last Job is suspended":                {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 3)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 4)}},
		"the last pods of a suspended set stop":    {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 2)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 2)}, suspended: true},
		"some pods of a suspended set stop":        {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 2, 0, 0, 2)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 2)}, suspended: true, want: true},
		"the set restarts":                         {next: jobsetv1alpha2.JobSetStatus{Restarts: 1}},
		"the set finishes":                         {next: jobsetv1alpha2.JobSetStatus{TerminalState: "Completed"}},
		"a condition changes":                      {next: jobsetv1alpha2.JobSetStatus{Conditions: []metav1.Condition{{Type: "Suspended"}}}},
		"the first counts of a set":                {next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 0)}},
		"an attempt begins":                        {next: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}},
		"an attempt becomes ready":                 {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(ready)}, want: true},
		"an attempt ends":                          {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(ended)}},
		"a Job is restarted by itself, and ready":  {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 2, JobRestarts: []int32{1}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 4))
			js.Status, js.Spec.Suspend = tc.stored, ptr.To(tc.suspended)
			diff(t, "may wait", tc.want, mayBeDeferred(observe(js), Plan{Status: &tc.next}))
		})
	}
	diff(t, "may wait without a change", false, mayBeDeferred(observe(newSet()), Plan{}))
}

// TestLargeStatusWaitsLonger looks at sets whose replicatedJobs of one Job become ready one after the other.
func TestLargeStatusWaitsLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		replicatedJobs, ready int
		queued                bool
		want                  time.Duration
	}{
		"few":                     {replicatedJobs: 100, ready: 1},
		"many":                    {replicatedJobs: 1000, ready: 1, want: 50 * time.Second},
		"many, the last one":      {replicatedJobs: 1000, ready: 1000},
		"many of a queue":         {replicatedJobs: 1000, ready: 1, queued: true, want: 50 * time.Second},
		"many of a queue, fewer":  {replicatedJobs: 1000, ready: -1, queued: true, want: 10 * time.Second},
		"many of a queue, active": {replicatedJobs: 1000, ready: 0, queued: true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet()
			js.Spec.ReplicatedJobs = nil
			var next jobsetv1alpha2.JobSetStatus
			for i := range tc.replicatedJobs {
				with(fmt.Sprint("w", i), 1)(js)
				count := jobsetv1alpha2.ReplicatedJobStatus{Name: fmt.Sprint("w", i), Active: 1}
				next.ReplicatedJobsStatus = append(next.ReplicatedJobsStatus, count)
			}
			js.Status = *next.DeepCopy()
			switch {
			case tc.ready < 0:
				js.Status.ReplicatedJobsStatus[0].Ready = 1
			case tc.ready == 0:
				for i := range js.Status.ReplicatedJobsStatus {
					js.Status.ReplicatedJobsStatus[i].Active = 0
				}
			}
			for i := range max(tc.ready, 0) {
				next.ReplicatedJobsStatus[i].Ready = 1
			}
			if tc.queued {
				js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
			}
			_, wait := deferStatus(observe(js), Outcome{Status: &next})
			diff(t, "time that the status waits", tc.want, wait)
		})
	}
}

// What was seen while the status was held back is stored with the times at which it was seen.
func TestDeferredStatusIsStored(t *testing.T) {
	js := newSet(with("w", 2))
	o := observe(js, jobNamed("w", 0), jobNamed("w", 1))
	o.KeepAttempts = true
	js.Status = *Decide(observed(o, func(o *Observed) { o.Jobs = nil })).Status
	seen, wait := deferred(o, Decide(o))
	if wait == 0 {
		t.Fatal("the creation of all Jobs does not wait")
	}
	created := metav1.NewMicroTime(o.Now.Time)
	// One Job is ready, the other one has ended already.
	up := observed(o, func(up *Observed) {
		up.Deferred, up.Now = seen, metav1.NewTime(o.Now.Add(2*time.Second))
		up.Jobs = []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, succeeded)}
	})
	if seen, wait = deferred(up, Decide(up)); wait == 0 {
		t.Fatal("that all Jobs are up does not wait although some have ended")
	}
	isUp := metav1.NewMicroTime(up.Now.Time)
	later := observed(up, func(later *Observed) {
		later.Deferred, later.Now = seen, metav1.NewTime(o.Now.Add(3*time.Second))
		later.Jobs[0] = jobNamed("w", 0)
	})
	a := Decide(later).Status.Attempts[0]
	diff(t, "time of creation", &created, a.CreateTime)
	diff(t, "time at which all Jobs were up", &isUp, a.ReadyTime)
	someoneElse := Decide(observed(later, func(o *Observed) { o.Deferred.UID = "another" })).Status.Attempts[0]
	now := metav1.NewMicroTime(later.Now.Time)
	diff(t, "time of creation for a set of the same name", &now, someoneElse.CreateTime)
	diff(t, "time at which all Jobs were up for a set of the same name", (*metav1.MicroTime)(nil), someoneElse.ReadyTime)
}

// Counts wait for five seconds from the first that has changed, and the time of creation alone for 15.
func TestStatusDelay(t *testing.T) {
	js := newSet(with("w", 4))
	o := observe(js)
	js.Status = jobsetv1alpha2.JobSetStatus{Attempts: []jobsetv1alpha2.Attempt{{Number: 1}}, ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}}
	at := metav1.NewMicroTime(o.Now.Time)
	next := js.Status.DeepCopy()
	p := Plan{Status: next}
	step := func(what string, seconds int, want time.Duration) {
		t.Helper()
		o.Now = metav1.NewTime(at.Add(time.Duration(seconds) * time.Second))
		var wait time.Duration
		o.Deferred, wait = deferred(o, p)
		diff(t, what, want, wait)
	}
	next.Attempts[0].CreateTime = &at
	step("all Jobs are there", 0, 15*time.Second)
	step("nothing else has happened", 10, 5*time.Second)
	next.ReplicatedJobsStatus[0].Active = 1
	step("a pod runs", 11, 4*time.Second)
	next.ReplicatedJobsStatus[0].Active = 2
	step("another pod runs", 12, 3*time.Second)
	next.ReplicatedJobsStatus[0].Active = 0
	step("none runs any more", 13, 2*time.Second)
	step("the time of creation has waited long enough", 15, 0)
	next.Attempts[0].CreateTime = nil
	next.ReplicatedJobsStatus[0].Active = 3
	step("pods run", 16, 5*time.Second)
	next.ReplicatedJobsStatus[0].Active = 4
	step("more pods run", 18, 3*time.Second)
	step("they have waited long enough", 21, 0)
	next.ReplicatedJobsStatus[0].Active = 0
	next.Attempts[0].CreateTime = &at
	p.Events = []Event{{}}
	step("somebody is to be told that the Jobs have been recreated", 21, 5*time.Second)
	p.Events = nil
	next.ReplicatedJobsStatus[0].Active = 5
	o.Deferred.Counts, o.Deferred.UID = at.Time, "another"
	step("what was seen about a set of the same name", 22, 5*time.Second)
	next.Restarts = 1
	step("more than counts has changed", 23, 0)
}

// Queueing systems give quota back once nothing of a set is active, and wait until all of it is up. They look at the whole
// set, and at the Jobs of each replicatedJob that have succeeded.
func TestSuspensionForQueues(t *testing.T) {
	type counts = []jobsetv1alpha2.ReplicatedJobStatus
	inQueue := func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} }
	resumed := withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionFalse, "ResumeJobs", "jobset is resumed")
	const atOnce, second, longer = time.Duration(0), time.Second, 5 * time.Second
	for name, tc := range map[string]struct {
		was, is counts
		// want is how long the status waits in a set of a queue, alone in another.
		want, alone time.Duration
	}{
		"the first Job is active":            {counts{{Name: "a"}, {Name: "b"}}, counts{{Name: "a"}, {Name: "b", Active: 1}}, atOnce, longer},
		"another Job is active":              {counts{{Name: "a"}, {Name: "b", Active: 1}}, counts{{Name: "a", Active: 1}, {Name: "b", Active: 1}}, longer, longer},
		"nothing is active any more":         {counts{{Name: "a", Active: 2}, {Name: "b"}}, counts{{Name: "a"}, {Name: "b"}}, atOnce, longer},
		"nothing of one kind is active":      {counts{{Name: "a", Active: 2}, {Name: "b", Active: 1}}, counts{{Name: "a"}, {Name: "b", Active: 1}}, second, longer},
		"another Job is ready":               {counts{{Name: "a", Ready: 0}, {Name: "b"}}, counts{{Name: "a", Ready: 1}, {Name: "b"}}, longer, longer},
		"a Job is ready no more":             {counts{{Name: "a", Ready: 2}, {Name: "b", Ready: 2}}, counts{{Name: "a", Ready: 1}, {Name: "b", Ready: 2}}, second, longer},
		"a Job has succeeded":                {counts{{Name: "a"}, {Name: "b"}}, counts{{Name: "a", Succeeded: 1}, {Name: "b"}}, second, longer},
		"not all are up any more":            {counts{{Name: "a", Ready: 1, Succeeded: 1}, {Name: "b", Ready: 1, Succeeded: 1}}, counts{{Name: "a", Ready: 1, Succeeded: 1}, {Name: "b", Ready: 0, Succeeded: 1}}, second, longer},
		"the last comes up while others end": {counts{{Name: "a", Succeeded: 1}, {Name: "b", Ready: 1, Succeeded: 1}}, counts{{Name: "a", Ready: 1, Succeeded: 1}, {Name: "b", Ready: 1, Succeeded: 1}}, atOnce, longer},
	} {
		t.Run(name, func(t *testing.T) {
			wait := func(change ...func(*jobsetv1alpha2.JobSet)) time.Duration {
				js := newSet(append(change, with("a", 2), with("b", 2))...)
				next := js.Status.DeepCopy()
				js.Status.ReplicatedJobsStatus, next.ReplicatedJobsStatus = tc.was, tc.is
				_, wait := deferred(observe(js), Plan{Status: next})
				return wait
			}
			diff(t, "wait in a queue", tc.want, wait(inQueue))
			diff(t, "wait of a set that was suspended before", tc.want, wait(resumed))
			diff(t, "wait of another set", tc.alone, wait())
		})
	}
}

func deferred(o Observed, p Plan) (Deferred, time.Duration) {
	out := Finish(o, p, Results{})
	return out.Deferred, out.DeferStatus
}

func mayBeDeferred(o Observed, p Plan) bool {
	_, wait := deferred(o, p)
	return wait > 0
}

func observed(o Observed, change func(*Observed)) Observed {
	change(&o)
	return o
}
