// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

func TestLostSetsAreNamed(t *testing.T) {
	s := &space{runner: &runner{Env: &Env{Sizes: Sizes{RunJobs: 1, RateJobs: 20}}}}
	l := &load{crowd: s.newCrowd("scheduled"), n: 5}
	for _, i := range []int{0, 3} {
		l.begin(l.name(i))
		job := &batchv1.Job{ObjectMeta: objectMeta(l.name(i)+"-workers-0", "ns")}
		job.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: l.name(i)}
		l.shown(job)
	}
	err := l.lostError()
	if want := "3 of 5 sets have no Job, such as small-scheduled-1, small-scheduled-2, small-scheduled-4"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	phase := &report.Phase{}
	phase.Add("wall", report.UnitSeconds, 50)
	l.madeSets = made{late: []float64{1, 2, 3, 4, 40}, took: 2 * time.Second}
	l.addTo(phase)
	for figure, want := range map[string]float64{
		report.LostSets: 3, report.SetsPerSecond: 2.5, "behind the schedule, p50": 3, "behind the schedule, longest": 40, "wall for each Job": 2000,
	} {
		if got := phase.Last(figure); got != want {
			t.Errorf("%s: %v, want %v", figure, got, want)
		}
	}
	l.n = 1
	if err := l.lostError(); err != nil {
		t.Errorf("error %v although all sets have their Job", err)
	}
}

func TestLargeSetIsNotedOnce(t *testing.T) {
	s := &space{runner: &runner{Env: &Env{Sizes: Sizes{RateJobs: 20}}}}
	l := &load{crowd: s.newCrowd("scheduled")}
	show := func(name string, suspended int32, since time.Duration) {
		js := &jobsetv1alpha2.JobSet{ObjectMeta: objectMeta(name, "ns")}
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Suspended: suspended}}
		l.noteLarge(js, time.Now().Add(-since))
	}
	show(setName, 19, time.Hour)
	show("other", 20, time.Hour)
	if l.large != 0 {
		t.Errorf("noted after %v, before the status showed all Jobs", l.large)
	}
	show(setName, 20, time.Hour)
	show(setName, 20, 5*time.Hour)
	if l.large < time.Hour || l.large > 4*time.Hour {
		t.Errorf("noted after %v, want an hour", l.large)
	}
}
