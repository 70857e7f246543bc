// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// byAffinity is a set of two Jobs, of which the scheduler chooses the domain of the first.
func byAffinity(change ...func(*jobsetv1alpha2.JobSet)) Observed {
	o := observe(newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), byRack, placedAt(racks(0, 0, "", "b"))}, change...)...), jobNamed("w", 0, attracting), jobNamed("w", 1, attracting))
	o.Gates.ExclusivePlacement = true
	return o
}

// attracting makes the Job one whose pods attract each other.
func attracting(job *batchv1.Job) {
	job.Annotations[jobsetv1alpha2.PlacementKey] = jobsetv1alpha2.PlacementByAffinity
}

func TestUnlocatedJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		job  *batchv1.Job
		off  bool
		want string
	}{
		"the scheduler chooses one":      {want: "w 0"},
		"the feature is off":             {off: true},
		"the set is suspended":           {set: []func(*jobsetv1alpha2.JobSet){isSuspended}},
		"the set has finished":           {set: []func(*jobsetv1alpha2.JobSet){completed}},
		"all are known":                  {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "a", "b"))}},
		"there is no placement":          {set: []func(*jobsetv1alpha2.JobSet){placedAt(nil)}},
		"the placement is of an attempt": {set: []func(*jobsetv1alpha2.JobSet){restarted(1, 1)}},
		"the Job is suspended":           {job: jobNamed("w", 0, attracting, jobIsSuspended)},
		"the Job is being deleted":       {job: jobNamed("w", 0, attracting, terminating)},
		"the Job was not placed":         {job: jobNamed("w", 0)},
		"both":                           {set: []func(*jobsetv1alpha2.JobSet){placedAt(racks(0, 0, "", ""))}, want: "w 0, w 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := byAffinity(tc.set...)
			o.Gates.ExclusivePlacement = !tc.off
			if tc.job != nil {
				o.Jobs[0] = tc.job
			}
			var got []string
			for _, job := range unlocatedJobs(o) {
				if job.Topology != rack || job.UID == "" {
					t.Errorf("the Job is %+v", job)
				}
				got = append(got, fmt.Sprint(o.JobSet.Spec.ReplicatedJobs[job.Place].Name, " ", job.Index))
			}
			diff(t, "Jobs", tc.want, strings.Join(got, ", "))
		})
	}
}

// TestLocate notes a domain that the scheduler has chosen, together with what else is to be written, and changes no Job.
func TestLocate(t *testing.T) {
	o := byAffinity()
	chosen := map[types.UID]jobsetv1alpha2.JobPlacement{"uid-js-w-0": {Domain: "x", Nodes: 3}, "uid-js-w-1": {Domain: "y"}}
	o.Located = hostplan.Of(domains.Located{Domains: chosen, After: time.Minute})
	p := Decide(o)
	if len(p.DeleteJobs)+len(p.CreateJobs)+len(p.PatchJobs) > 0 {
		t.Errorf("Jobs change: %+v", p)
	}
	jobs := p.Status.Placement.ReplicatedJobs[0].Jobs
	diff(t, "located", jobsetv1alpha2.JobPlacement{Domain: "x", Nodes: 3}, jobs[0])
	diff(t, "placed", jobsetv1alpha2.JobPlacement{Domain: "b"}, jobs[1])
	diff(t, "when to ask again", time.Minute, p.RequeueAfter)

	o.JobSet.Status, o.Located = *statusAfter(byAffinity(), Decide(byAffinity())), hostplan.Of(domains.Located{Domains: chosen})
	p = Decide(o)
	if Finish(o, p, Results{}).DeferStatus == 0 {
		t.Error("a domain alone is written at once")
	}
	o.JobSet.Status = *p.Status
	o.Waiting = map[types.UID]domains.Waiting{"uid-js-w-0": {Since: before.Time, Reason: noRoom}}
	if stuck := stuck(o); len(stuck) != 1 || stuck[0].At.Domain != "x" {
		t.Errorf("Jobs that may move: %+v", stuck)
	}
}

// TestLocateFailedAttempt keeps a domain for the next attempt that is known when the set restarts.
func TestLocateFailedAttempt(t *testing.T) {
	o := byAffinity(failurePolicy(1))
	o.Jobs[1] = jobNamed("w", 1, failedWith("BackoffLimitExceeded", "", 0))
	o.Located = hostplan.Of(domains.Located{Domains: map[types.UID]jobsetv1alpha2.JobPlacement{"uid-js-w-0": {Domain: "x"}}})
	p := Decide(o)
	diff(t, "restarts", int32(1), p.Status.Restarts)
	diff(t, "domain of the failed attempt", "x", p.Status.Placement.ReplicatedJobs[0].Jobs[0].Domain)
}
