// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// in puts the pods of a Job into a rack.
func in(domain string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{rack: domain} }
}

// TestJobElsewhere shows which Jobs are created once more because they run in a domain that the set did not choose for them.
func TestJobElsewhere(t *testing.T) {
	inFirst := func(change func(*jobsetv1alpha2.JobPlacement)) func(*jobsetv1alpha2.JobSet) {
		return func(js *jobsetv1alpha2.JobSet) { change(&js.Status.Placement.ReplicatedJobs[0].Jobs[0]) }
	}
	unchanged := func(*jobsetv1alpha2.JobSet) {}
	noPlacement := func(js *jobsetv1alpha2.JobSet) { js.Status.Placement = nil }
	for name, tc := range map[string]struct {
		job     func(*batchv1.Job)
		change  func(*jobsetv1alpha2.JobSet)
		off     bool
		deleted string
	}{
		"its domain":                  {job: in("a")},
		"another domain":              {job: in("b"), deleted: "js-w-0"},
		"no domain":                   {job: func(*batchv1.Job) {}},
		"the feature is off":          {job: in("b"), off: true},
		"a pod is ready":              {job: func(job *batchv1.Job) { in("b")(job); podsReady(job) }},
		"a pod has succeeded":         {job: func(job *batchv1.Job) { in("b")(job); job.Status.Succeeded = 1 }},
		"all pods were ready":         {job: in("b"), change: inFirst(func(at *jobsetv1alpha2.JobPlacement) { at.Ready = true })},
		"the set has ended":           {job: func(job *batchv1.Job) { in("b")(job); failedWith("BackoffLimitExceeded", "", 0)(job) }, change: completed, deleted: "js-w-1"},
		"it is suspended":             {job: func(job *batchv1.Job) { in("b")(job); jobIsSuspended(job) }},
		"the set is suspended":        {job: in("b"), change: isSuspended},
		"the scheduler was to choose": {job: in("b"), change: inFirst(func(at *jobsetv1alpha2.JobPlacement) { at.Domain = "" }), deleted: "js-w-0"},
		"the set is not placed yet":   {job: in("b"), change: noPlacement, deleted: "js-w-0"},
		"the set is not placed and chooses it itself": {job: in("b"), change: func(js *jobsetv1alpha2.JobSet) {
			noPlacement(js)
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{rack: "b"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = unchanged
			}
			o := stuckSet(jobNamed("w", 0, tc.job), tc.change)
			o.Waiting, o.Gates.ExclusivePlacement = nil, !tc.off
			diff(t, "deleted", tc.deleted, deletedNames(Decide(o)))
		})
	}
}

// TestStatusFollowsJobs shows which domains a set has while a Job works in another domain than it says.
func TestStatusFollowsJobs(t *testing.T) {
	works := func(domain string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { in(domain)(job); podsReady(job) }
	}
	for name, tc := range map[string]struct {
		first, second func(*batchv1.Job)
		change        func(*jobsetv1alpha2.JobSet)
		want, deleted string
	}{
		"in its domain":                   {first: works("a"), second: in("b"), want: "a b"},
		"in a domain of none":             {first: works("c"), second: in("b"), want: "c b"},
		"in that of a Job that waits":     {first: works("b"), second: func(job *batchv1.Job) { in("b")(job); jobIsSuspended(job) }, want: "b a"},
		"in that of a Job that starts":    {first: works("b"), second: in("b"), want: "b a", deleted: "js-w-1"},
		"while it is being deleted":       {first: func(job *batchv1.Job) { works("b")(job); terminating(job) }, second: in("b"), want: "a b"},
		"in that of a Job that works":     {first: works("b"), second: works("b"), want: "a b"},
		"each in the domain of the other": {first: works("b"), second: works("a"), want: "b a"},
		"the scheduler was to choose": {
			first: works("b"), second: in("b"), want: "b ", deleted: "js-w-1",
			change: func(js *jobsetv1alpha2.JobSet) { js.Status.Placement.ReplicatedJobs[0].Jobs[0].Domain = "" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*jobsetv1alpha2.JobSet) {}
			}
			o := observe(newSet(with("w", 2), byRack, placedAt(racks(0, 0, "a", "b")), tc.change), jobNamed("w", 0, tc.first), jobNamed("w", 1, tc.second))
			o.Gates.ExclusivePlacement = true
			for pass := range 2 { // one Job at a time
				p := Decide(o)
				if pass == 0 && len(p.DeleteJobs) > 0 {
					t.Errorf("deleted before the status follows: %s", deletedNames(p))
				}
				o.JobSet.Status = *statusAfter(o, p)
			}
			var got []string
			for _, job := range o.JobSet.Status.Placement.ReplicatedJobs[0].Jobs {
				got = append(got, job.Domain)
			}
			diff(t, "domains", tc.want, strings.Join(got, " "))
			diff(t, "deleted", tc.deleted, deletedNames(Decide(o)))
		})
	}
}

// TestJobsThatRunWithoutPlace checks which Jobs the placer gets as running in a domain that the stored placement does not have for them, when
// it looks for domains for other Jobs.
func TestJobsThatRunWithoutPlace(t *testing.T) {
	type jobs = []*batchv1.Job
	works := func(index int, domain string, change ...func(*batchv1.Job)) *batchv1.Job {
		return jobNamed("w", index, append([]func(*batchv1.Job){in(domain), podsReady}, change...)...)
	}
	for name, tc := range map[string]struct {
		jobs   jobs
		change func(*jobsetv1alpha2.JobSet)
		asks   string
		want   []domains.Running
	}{
		"none":                 {asks: "0 1 2"},
		"a Job without place":  {jobs: jobs{works(0, "a")}, asks: "1 2", want: []domains.Running{{Topology: rack, Domain: "a"}}},
		"a Job with its place": {jobs: jobs{works(0, "a")}, change: placedAt(racks(0, 0, "a")), asks: "1 2"},
		"a Job that runs elsewhere": {
			jobs: jobs{works(0, "a"), works(1, "d")}, change: placedAt(racks(0, 0, "a", "b")), asks: "2",
			want: []domains.Running{{Index: 1, Topology: rack, Domain: "d"}},
		},
		"a Job with a domain of the scheduler": {
			jobs: jobs{works(0, "a")}, change: placedAt(racks(0, 0, "")), asks: "1 2", want: []domains.Running{{Topology: rack, Domain: "a"}},
		},
		"a Job that is suspended":       {jobs: jobs{works(0, "a", jobIsSuspended)}, asks: "0 1 2"},
		"a Job that has succeeded":      {jobs: jobs{works(0, "a", succeeded)}, asks: "1 2"},
		"a Job that is being deleted":   {jobs: jobs{works(0, "a", terminating)}, asks: "0 1 2"},
		"a Job that has done nothing":   {jobs: jobs{jobNamed("w", 0, in("a"))}, asks: "0 1 2"},
		"a Job of an attempt before":    {jobs: jobs{works(0, "a")}, change: restarted(1, 1), asks: "0 1 2"},
		"a Job without a domain":        {jobs: jobs{jobNamed("w", 0, podsReady)}, asks: "1 2"},
		"a Job that is not exclusive":   {jobs: jobs{jobNamed("other", 0, in("a"), podsReady)}, asks: "0 1 2"},
		"a Job in a domain of no rack":  {jobs: jobs{works(0, "a", func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"} })}, asks: "1 2"},
		"a Job where the template says": {jobs: jobs{jobNamed("w", 0, in("a"))}, change: chosen("a"), asks: "1 2", want: []domains.Running{{Topology: rack, Domain: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*jobsetv1alpha2.JobSet) {}
			}
			o := observe(newSet(with("w", 3), with("other", 1), byRack, func(js *jobsetv1alpha2.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: ""}
			}, tc.change), tc.jobs...)
			o.Gates.ExclusivePlacement = true
			waits := unplacedJobs(o)
			diff(t, "asks for", tc.asks, asked(waits))
			diff(t, "runs", tc.want, waits[0].Running)
		})
	}
	o := stuckSet(jobNamed("w", 0), func(*jobsetv1alpha2.JobSet) {})
	o.Jobs[1] = works(1, "c")
	diff(t, "beside a Job that is stuck", []domains.Running{{Index: 1, Topology: rack, Domain: "c"}}, stuck(o)[0].Running)
}

// chosen makes the set one that names the domain itself.
func chosen(domain string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{rack: domain}
	}
}
