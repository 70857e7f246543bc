// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// TestUnplacedJobsGoOn turns exclusive placement on for sets whose Jobs were created without it: nothing happens to
// Jobs that run, be they ready or not, nor to those that have ended or are suspended, and the status stays as it would
// be without the feature.
func TestUnplacedJobsGoOn(t *testing.T) {
	ready := func(job *batchv1.Job) { job.Status.Active, job.Status.Ready = 1, ptr.To[int32](1) }
	pending := func(job *batchv1.Job) { job.Status.Active = 1 }
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		jobs []*batchv1.Job
	}{
		"their pods are ready":           {jobs: []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, ready)}},
		"their pods are pending":         {jobs: []*batchv1.Job{jobNamed("w", 0, pending), jobNamed("w", 1, ready)}},
		"they have no pods yet":          {jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}},
		"one has succeeded":              {jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, ready)}},
		"they are of the second attempt": {set: []func(*jobsetv1alpha2.JobSet){restarted(1, 1)}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), ready), jobNamed("w", 1, attempt("1"), ready)}},
		"the set is suspended": {
			set: []func(*jobsetv1alpha2.JobSet){isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended)},
		},
		"the set is being suspended": {set: []func(*jobsetv1alpha2.JobSet){isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, jobIsSuspended)}},
		"the set completes":          {jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}},
		"the set has finished":       {set: []func(*jobsetv1alpha2.JobSet){completed}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded), jobNamed("w", 1, succeeded)}},
		"one fails": {
			set: []func(*jobsetv1alpha2.JobSet){failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0, failedWith("BackoffLimitExceeded", "no", 0)), jobNamed("w", 1, ready)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), byRack}, tc.set...)...), tc.jobs...)
			off := Decide(o)
			o.Gates.ExclusivePlacement, o.Priorities = true, map[string]int32{"": 0}
			diff(t, "asks for", "", asked(unplacedJobs(o)))
			diff(t, "plan", off, Decide(o))
			diff(t, "Jobs that may move", 0, len(stuck(o)))
		})
	}
}

// TestOnlyNewJobsArePlaced follows a set with one Job that was created without placement, and one that is missing: only
// the latter gets a domain. After a restart, both do.
func TestOnlyNewJobsArePlaced(t *testing.T) {
	runs := jobNamed("w", 0)
	set := newSet(with("w", 2), byRack, failurePolicy(1))
	o := observe(set, runs)
	o.Gates.ExclusivePlacement, o.Placed = true, hostplan.Of(domains.Placed{Placement: racks(0, 0, "", "b")})
	p := Decide(o)
	diff(t, "asks for", "1", asked(unplacedJobs(o)))
	status := statusAfter(o, p)
	diff(t, "placement", "0:  b", placementText(status.Placement))

	set.Status, o.Placed = *status, hostplan.NotObtained[domains.Placed]()
	p = Decide(o)
	diff(t, "asks for once that is stored", "", asked(unplacedJobs(o)))
	diff(t, "creates", "w-1 b", createdAt(p))
	diff(t, "deletes", "", deletedNames(p))
	diff(t, "patches", 0, len(p.PatchJobs))
	diff(t, "Jobs that get the domain of their first pod, and may leave it", 0, len(unlocatedJobs(o)))

	failed := jobNamed("w", 0, failedWith("BackoffLimitExceeded", "no", 0))
	o = observe(set, failed, jobNamed("w", 1))
	o.Gates.ExclusivePlacement = true
	set.Status = *statusAfter(o, Decide(o))
	o = observe(set, failed, jobNamed("w", 1))
	o.Gates.ExclusivePlacement = true
	diff(t, "attempt", int32(1), set.Status.Restarts)
	diff(t, "asks for after the restart", "0 1", asked(unplacedJobs(o)))
	diff(t, "deletes after the restart", "js-w-0 js-w-1", deletedNames(Decide(o)))
}
