// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

type change = func(*jobsetv1alpha2.JobSet)

// counted has a status count so many Jobs of the first replicatedJob.
func counted(ready, succeeded, active int32) change {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = append(js.Status.ReplicatedJobsStatus, jobsetv1alpha2.ReplicatedJobStatus{
			Name: js.Spec.ReplicatedJobs[len(js.Status.ReplicatedJobsStatus)].Name, Ready: ready, Succeeded: succeeded, Active: active,
		})
	}
}

// attempted appends an attempt that runs, and ends those before.
func attempted(scope jobsetv1alpha2.AttemptScope, ready bool) change {
	return func(js *jobsetv1alpha2.JobSet) {
		at := ptr.To(metav1.NewMicroTime(time.Unix(1_000, 0)))
		for i := range js.Status.Attempts {
			js.Status.Attempts[i].EndTime = at
		}
		a := jobsetv1alpha2.Attempt{Number: int32(len(js.Status.Attempts) + 1), Scope: scope, RequestTime: at}
		if scope != jobsetv1alpha2.ScopeJobSet {
			a.ReplicatedJob = "w"
		}
		if ready {
			a.ReadyTime = at
		}
		js.Status.Attempts = append(js.Status.Attempts, a)
	}
}

func ended(js *jobsetv1alpha2.JobSet) {
	js.Status.Attempts[len(js.Status.Attempts)-1].EndTime = ptr.To(metav1.NewMicroTime(time.Unix(2_000, 0)))
}

func suspended(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }

func restarting(js *jobsetv1alpha2.JobSet) {
	js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.JobSetRestarting, Status: metav1.ConditionTrue}}
}

func failed(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed }

// ofPods gives each Job so many pods at a time.
func ofPods(pods int32) change {
	return func(js *jobsetv1alpha2.JobSet) {
		for i := range js.Spec.ReplicatedJobs {
			js.Spec.ReplicatedJobs[i].Template.Spec.Parallelism = ptr.To(pods)
		}
	}
}

// with adds another replicatedJob.
func with(name string, jobs int32) change {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, jobsetv1alpha2.ReplicatedJob{Name: name, Replicas: ptr.To(jobs)})
	}
}

// TestActivity derives from spec and status how many pods of a large set come and go.
func TestActivity(t *testing.T) {
	const all, one = jobsetv1alpha2.ScopeJobSet, jobsetv1alpha2.ScopeJob
	for name, tc := range map[string]struct {
		jobs    int32
		changes []change
		want    activity
	}{
		"a small set":               {jobs: 99, want: unmeasured},
		"the smallest large set":    {jobs: 100, want: manyMove},
		"few Jobs of many pods":     {jobs: 1, changes: []change{ofPods(100)}, want: manyMove},
		"a set that is new":         {jobs: 400, want: manyMove},
		"a set that starts":         {jobs: 400, changes: []change{attempted(all, false), counted(0, 0, 400)}, want: manyMove},
		"a set almost all of which": {jobs: 400, changes: []change{attempted(all, false), counted(399, 0, 400)}, want: manyMove},
		"a set that runs":           {jobs: 400, changes: []change{attempted(all, true), counted(400, 0, 400)}, want: atRest},
		"a set whose Jobs succeed":  {jobs: 400, changes: []change{attempted(all, true), counted(1, 399, 1)}, want: atRest},

		"one Job without its pod":           {jobs: 400, changes: []change{attempted(all, true), counted(399, 0, 400)}, want: fewMove},
		"a quarter of the Jobs":             {jobs: 400, changes: []change{attempted(all, true), counted(300, 0, 400)}, want: fewMove},
		"more than a quarter of the Jobs":   {jobs: 400, changes: []change{attempted(all, true), counted(299, 0, 400)}, want: manyMove},
		"the only Job, of 400 pods":         {jobs: 1, changes: []change{ofPods(400), attempted(all, true), counted(0, 0, 1)}, want: fewMove},
		"more Jobs than before":             {jobs: 400, changes: []change{attempted(all, true), counted(100, 0, 100)}, want: manyMove},
		"a second replicatedJob that waits": {jobs: 300, changes: []change{with("x", 100), attempted(all, true), counted(300, 0, 300)}, want: fewMove},

		"a restart whose counts are old":         {jobs: 400, changes: []change{attempted(all, true), attempted(all, false), counted(400, 0, 400)}, want: manyMove},
		"a restart without a history":            {jobs: 400, changes: []change{restarting, counted(400, 0, 400)}, want: manyMove},
		"a restart during which a Job fails":     {jobs: 400, changes: []change{restarting, attempted(one, false), counted(399, 0, 400)}, want: manyMove},
		"a restart of one Job":                   {jobs: 400, changes: []change{attempted(one, false), counted(399, 0, 400)}, want: fewMove},
		"a restart of one Job, with old counts":  {jobs: 400, changes: []change{attempted(one, false), counted(400, 0, 400)}, want: fewMove},
		"a restart of one of two Jobs":           {jobs: 2, changes: []change{ofPods(50), attempted(one, false), counted(1, 0, 2)}, want: manyMove},
		"a restart of a large replicatedJob":     {jobs: 300, changes: []change{with("x", 100), attempted(jobsetv1alpha2.ScopeReplicatedJob, false), counted(300, 0, 300), counted(100, 0, 100)}, want: manyMove},
		"a restart of a small replicatedJob":     {jobs: 10, changes: []change{with("x", 390), attempted(jobsetv1alpha2.ScopeReplicatedJob, false), counted(10, 0, 10), counted(390, 0, 390)}, want: fewMove},
		"a start without a history":              {jobs: 400, changes: []change{counted(299, 0, 400)}, want: manyMove},
		"the end of a start without a history":   {jobs: 400, changes: []change{counted(399, 0, 400)}, want: fewMove},
		"a set that runs without a history":      {jobs: 400, changes: []change{counted(400, 0, 400)}, want: atRest},
		"a start of few Jobs, without a history": {jobs: 4, changes: []change{ofPods(100), counted(2, 0, 4)}, want: manyMove},

		"a set that is created suspended":   {jobs: 400, changes: []change{suspended}, want: atRest},
		"a set that is being suspended":     {jobs: 400, changes: []change{suspended, attempted(all, true), counted(400, 0, 400)}, want: manyMove},
		"a start that is suspended":         {jobs: 400, changes: []change{suspended, attempted(all, false), counted(0, 0, 400)}, want: manyMove},
		"a start that is suspended at once": {jobs: 400, changes: []change{suspended, attempted(all, false)}, want: fewMove},
		"the last Jobs of a suspension":     {jobs: 400, changes: []change{suspended, attempted(all, true), counted(0, 0, 100)}, want: fewMove},
		"a set that is suspended":           {jobs: 400, changes: []change{suspended, attempted(all, true), ended, counted(0, 0, 0)}, want: atRest},
		"a set that is resumed":             {jobs: 400, changes: []change{attempted(all, true), ended, counted(0, 0, 0)}, want: manyMove},
		"a set that is resumed, running":    {jobs: 400, changes: []change{attempted(all, true), ended, attempted(all, false), counted(0, 0, 0)}, want: manyMove},

		"a set that has failed, whose Jobs run": {jobs: 400, changes: []change{failed, attempted(all, true), ended, counted(399, 0, 399)}, want: manyMove},
		"a set that has failed":                 {jobs: 400, changes: []change{failed, attempted(all, false), ended, counted(0, 3, 0)}, want: over},
		"a set that has failed suspended":       {jobs: 400, changes: []change{failed, suspended, counted(0, 3, 0)}, want: over},
		"a set without Jobs":                    {jobs: 0, changes: []change{ofPods(400)}, want: unmeasured},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(newJobSet("js", "auto", tc.jobs, tc.changes...))
			if s.activity = activityOf(newJobSet("js", "auto", tc.jobs, tc.changes...), s.pods); s.activity != tc.want {
				t.Errorf("activity %d, want %d", s.activity, tc.want)
			}
		})
	}
}
