// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestCountJobs(t *testing.T) {
	sized := func(parallelism, completions *int32, readyPods, succeededPods int32) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Spec.Parallelism, job.Spec.Completions = parallelism, completions
			job.Status.Ready, job.Status.Succeeded = ptr.To(readyPods), succeededPods
		}
	}
	active := func(job *batchv1.Job) { job.Status.Active = 1 }
	type status = jobsetv1alpha2.ReplicatedJobStatus
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		jobs []*batchv1.Job
		want []status
	}{
		"no Jobs count as zeros, by descending name": {
			want: []status{{Name: "w"}, {Name: "a"}},
		},
		"terminal Jobs count by outcome only": {
			jobs: []*batchv1.Job{jobNamed("w", 0, succeeded, active), jobNamed("w", 1, jobFailed, ready), jobNamed("a", 0, succeeded)},
			want: []status{{Name: "w", Succeeded: 1, Failed: 1}, {Name: "a", Succeeded: 1}},
		},
		"Jobs of an earlier attempt are active while they have pods, and nothing else": {
			jobs: []*batchv1.Job{jobNamed("w", 0, ready, attempt("0")), jobNamed("w", 1, ready, attempt("1"))},
			want: []status{{Name: "w", Active: 2, Ready: 1}, {Name: "a"}},
		},
		"so are those of which pods stop": {
			jobs: []*batchv1.Job{jobNamed("w", 0, podsStop, terminating, attempt("0")), jobNamed("w", 1, terminating, attempt("0")), jobNamed("a", 0, attempt("1"))},
			want: []status{{Name: "w", Active: 1}, {Name: "a"}},
		},
		"Jobs that have ended are not active": {
			jobs: []*batchv1.Job{jobNamed("w", 0, ready, jobFailed, attempt("0")), jobNamed("a", 0, attempt("1"))},
			want: []status{{Name: "w"}, {Name: "a"}},
		},
		"in a set that runs, a pod that is replaced is none": {
			jobs: []*batchv1.Job{jobNamed("w", 0, podsStop)},
			want: []status{{Name: "w"}, {Name: "a"}},
		},
		"in a suspended set, pods that stop still run": {
			set:  []func(*jobsetv1alpha2.JobSet){isSuspended},
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, podsStop), jobNamed("w", 1, jobIsSuspended)},
			want: []status{{Name: "w", Active: 1, Suspended: 2}, {Name: "a"}},
		},
		"in a finished set, pods that stop still run": {
			set:  []func(*jobsetv1alpha2.JobSet){endedAs("Completed")},
			jobs: []*batchv1.Job{jobNamed("w", 0, terminating, podsStop), jobNamed("w", 1, terminating)},
			want: []status{{Name: "w", Active: 1}, {Name: "a"}},
		},
		"a Job is ready when as many pods as run at a time are ready or have succeeded": {
			jobs: []*batchv1.Job{
				jobNamed("w", 0, sized(ptr.To[int32](3), nil, 2, 1)),
				jobNamed("w", 1, sized(ptr.To[int32](3), nil, 2, 0)),
			},
			want: []status{{Name: "w", Ready: 1}, {Name: "a"}},
		},
		"fewer completions than parallelism need fewer pods": {
			jobs: []*batchv1.Job{jobNamed("w", 0, sized(ptr.To[int32](3), ptr.To[int32](2), 2, 0))},
			want: []status{{Name: "w", Ready: 1}, {Name: "a"}},
		},
		"more completions than parallelism need no more pods": {
			jobs: []*batchv1.Job{jobNamed("w", 0, sized(ptr.To[int32](2), ptr.To[int32](9), 2, 0))},
			want: []status{{Name: "w", Ready: 1}, {Name: "a"}},
		},
		"a Job with parallelism 0 is ready at once": {
			jobs: []*batchv1.Job{jobNamed("w", 0, sized(ptr.To[int32](0), nil, 0, 0))},
			want: []status{{Name: "w", Ready: 1}, {Name: "a"}},
		},
		"while the set is suspended, Jobs of the earlier attempt that have pods are active": {
			set:  []func(*jobsetv1alpha2.JobSet){isSuspended, restarted(1, 1)},
			jobs: []*batchv1.Job{jobNamed("w", 0, ready, terminating), jobNamed("w", 1, terminating)},
			want: []status{{Name: "w", Active: 1}, {Name: "a"}},
		},
		"a suspended Job whose pods still end counts as suspended, active and ready": {
			jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, ready)},
			want: []status{{Name: "w", Ready: 1, Active: 1, Suspended: 1}, {Name: "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(append(tc.set, with("a", 1), with("w", 2))...)
			for _, job := range tc.jobs {
				if job.Labels[jobsetv1alpha2.RestartsKey] == "1" {
					set.Status.Restarts = 1
				}
			}
			o := observe(set, tc.jobs...)
			diff(t, "counts", tc.want, countsOf(o))
		})
	}
}

func TestCountJobsKeepsRestartsOfSingleJobs(t *testing.T) {
	set := newSet(with("w", 2))
	set.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
		{Name: "w", JobRestarts: []int32{0, 3}, JobRestartsCountTowardsMax: []int32{0, 1}},
	}
	o := observe(set)
	got := countsOf(o)
	diff(t, "without the feature", set.Status.ReplicatedJobsStatus, got)
	o.Gates.RestartJob = true
	diff(t, "with the feature", set.Status.ReplicatedJobsStatus, countsOf(o))
	got[0].JobRestarts[0] = 9
	if set.Status.ReplicatedJobsStatus[0].JobRestarts[0] == 9 {
		t.Error("the next status shares memory with the observed one")
	}
}

// countsOf returns the counts of a snapshot as they are stored.
func countsOf(o Observed) []jobsetv1alpha2.ReplicatedJobStatus {
	return asStored(classify(indexed(o)).counts)
}

// TestCountsOfFinishedSets has Jobs that are deleted after their set has finished, for example by their own time to live.
func TestCountsOfFinishedSets(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	type status = jobsetv1alpha2.ReplicatedJobStatus
	counted := func(counts ...status) set {
		return func(js *jobsetv1alpha2.JobSet) { js.Status.ReplicatedJobsStatus = counts }
	}
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		want []status
	}{
		"all Jobs of a completed set are gone":      {set: []set{endedAs("Completed"), counted(status{Name: "w", Succeeded: 2})}, want: []status{{Name: "w", Succeeded: 2}}},
		"one of them is":                            {set: []set{endedAs("Completed"), counted(status{Name: "w", Succeeded: 2})}, jobs: []*batchv1.Job{jobNamed("w", 1, succeeded)}, want: []status{{Name: "w", Succeeded: 2}}},
		"the failed Job of a failed set is gone":    {set: []set{endedAs("Failed"), counted(status{Name: "w", Failed: 1, Succeeded: 1})}, want: []status{{Name: "w", Failed: 1, Succeeded: 1}}},
		"Jobs that were active are counted no more": {set: []set{endedAs("Failed"), counted(status{Name: "w", Failed: 1, Active: 1, Ready: 1})}, want: []status{{Name: "w", Failed: 1}}},
		"a set that runs counts what exists":        {set: []set{counted(status{Name: "w", Succeeded: 1})}, jobs: []*batchv1.Job{jobNamed("w", 1, ready)}, want: []status{{Name: "w", Active: 1, Ready: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append([]set{with("w", 2)}, tc.set...)...), tc.jobs...)
			p := Decide(o)
			got := o.JobSet.Status.ReplicatedJobsStatus
			if p.Status != nil {
				got = p.Status.ReplicatedJobsStatus
			}
			diff(t, "counts", tc.want, got)
		})
	}
}

// A Job that was created too late may have the place of one that has ended and is gone.
func TestCountsOfFinishedSetsStayWithinTheReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs []*batchv1.Job
		want jobsetv1alpha2.ReplicatedJobStatus
	}{
		"all Jobs are gone":          {nil, jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Succeeded: 1, Failed: 1}},
		"one is there still":         {[]*batchv1.Job{jobNamed("w", 0, succeeded)}, jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Succeeded: 1, Failed: 1}},
		"one was created too late":   {[]*batchv1.Job{jobNamed("w", 0, ready)}, jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Ready: 1, Active: 1, Succeeded: 1}},
		"both were created too late": {[]*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, ready)}, jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Ready: 2, Active: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(with("w", 2), completed), tc.jobs...)
			o.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Succeeded: 1, Failed: 1}}
			diff(t, "counts", []jobsetv1alpha2.ReplicatedJobStatus{tc.want}, statusAfter(o, Decide(o)).ReplicatedJobsStatus)
		})
	}
}
