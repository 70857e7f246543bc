// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestWhichStatusesMayWait(t *testing.T) {
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
		"one more Job is ready":                   {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 2, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(2, 3, 0, 0, 0)}, want: true},
		"one Job is ready no more":                {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(3, 4, 0, 0, 0)}, want: true},
		"some of the Jobs have succeeded":         {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(2, 2, 2, 0, 0)}, want: true},
		"all Jobs are there":                      {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(created)}, want: true},
		"the last Job is ready":                   {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(3, 4, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(4, 4, 0, 0, 0)}},
		"the last Job has succeeded":              {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 3, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 4, 0, 0)}},
		"a Job has failed":                        {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 1, 0)}},
		"the last Job is suspended":               {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 3)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 4)}},
		"the last pods of a suspended set stop":   {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 2)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 0, 0, 0, 2)}, suspended: true},
		"some pods of a suspended set stop":       {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 2, 0, 0, 2)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 2)}, suspended: true, want: true},
		"the set restarts":                        {next: jobsetv1alpha2.JobSetStatus{Restarts: 1}},
		"the set finishes":                        {next: jobsetv1alpha2.JobSetStatus{TerminalState: "Completed"}},
		"a condition changes":                     {next: jobsetv1alpha2.JobSetStatus{Conditions: []metav1.Condition{{Type: "Suspended"}}}},
		"the first counts of a set":               {next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(0, 1, 0, 0, 0)}},
		"an attempt begins":                       {next: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}},
		"an attempt becomes ready":                {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(ready)}},
		"an attempt ends":                         {stored: jobsetv1alpha2.JobSetStatus{Attempts: history(started)}, next: jobsetv1alpha2.JobSetStatus{Attempts: history(ended)}},
		"a Job is restarted by itself, and ready": {stored: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: counts(1, 1, 0, 0, 0)}, next: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 2, JobRestarts: []int32{1}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 4))
			js.Status, js.Spec.Suspend = tc.stored, ptr.To(tc.suspended)
			diff(t, "may wait", tc.want, StatusMayWait(observe(js), Plan{Status: &tc.next}))
		})
	}
	diff(t, "may wait without a change", false, StatusMayWait(observe(newSet()), Plan{}))
}

// What was seen while the status was held back is stored with the time at which it was seen.
func TestWhatWasNotedIsStored(t *testing.T) {
	js := newSet(with("w", 2))
	o := observe(js, jobNamed("w", 0), jobNamed("w", 1))
	o.Gates.Attempts = true
	js.Status = *Decide(observed(o, func(o *Observed) { o.Jobs = nil })).Status
	p := Decide(o)
	if !StatusMayWait(o, p) {
		t.Fatalf("the creation of all Jobs does not wait: %+v", p.Status)
	}
	later := observed(o, func(later *Observed) {
		later.Noted = Note(o, p)
		later.Now = metav1.NewTime(o.Now.Add(time.Minute))
	})
	want := metav1.NewMicroTime(o.Now.Time)
	diff(t, "time of creation", &want, Decide(later).Status.Attempts[0].CreateTime)
	someoneElse := observed(later, func(o *Observed) { o.Noted.UID = "another" })
	want = metav1.NewMicroTime(later.Now.Time)
	diff(t, "time of creation for a set of the same name", &want, Decide(someoneElse).Status.Attempts[0].CreateTime)
}

func observed(o Observed, change func(*Observed)) Observed {
	change(&o)
	return o
}
