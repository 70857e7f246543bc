// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

func TestClassify(t *testing.T) {
	type meanings struct{ Previous, Succeeded, Failed, Active, Problems []string }
	restartedJob := func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{0, 1, 0}}}
	}
	for name, tc := range map[string]struct {
		set   []func(*jobsetv1alpha2.JobSet)
		gates gates.Gates
		jobs  []*batchv1.Job
		want  meanings
	}{
		"Jobs of the current attempt are sorted by their terminal condition": {
			jobs: []*batchv1.Job{jobNamed("w", 2, succeeded), jobNamed("w", 1, jobFailed), jobNamed("w", 0)},
			want: meanings{Succeeded: []string{"js-w-2"}, Failed: []string{"js-w-1"}, Active: []string{"js-w-0"}},
		},
		"a Job of an earlier attempt is previous, whatever its condition": {
			set:  []func(*jobsetv1alpha2.JobSet){restarted(2, 2)},
			jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), succeeded), jobNamed("w", 1, attempt("0"), jobFailed), jobNamed("w", 2, attempt("2"))},
			want: meanings{Previous: []string{"js-w-0", "js-w-1"}, Active: []string{"js-w-2"}},
		},
		"a Job of an attempt that the snapshot does not know yet is current": {
			jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"))},
			want: meanings{Active: []string{"js-w-0"}},
		},
		"a Job without an attempt is left alone and reported, and the others are not": {
			jobs: []*batchv1.Job{jobNamed("w", 0, unlabeled(jobsetv1alpha2.RestartsKey)), jobNamed("w", 1)},
			want: meanings{Active: []string{"js-w-1"}, Problems: []string{
				`job "js-w-0" is ignored: label jobset.sigs.k8s.io/restart-attempt is missing`}},
		},
		"a Job whose attempt is no number is left alone": {
			jobs: []*batchv1.Job{jobNamed("w", 0, attempt("one"))},
			want: meanings{Problems: []string{
				`job "js-w-0" is ignored: label jobset.sigs.k8s.io/restart-attempt must be a number of 0 or more, not "one"`}},
		},
		"a Job with an index beyond the replicas is left alone": {
			jobs: []*batchv1.Job{jobNamed("w", 3)},
			want: meanings{Problems: []string{
				`job "js-w-3" is ignored: label jobset.sigs.k8s.io/job-index must be less than the 3 replicas, not 3`}},
		},
		"a Job of a replicatedJob that does not exist is left alone": {
			jobs: []*batchv1.Job{jobNamed("x", 0)},
			want: meanings{Problems: []string{
				`job "js-x-0" is ignored: label jobset.sigs.k8s.io/replicatedjob-name must be the name of a replicatedJob, not "x"`}},
		},
		"with RestartJob a Job behind its own counter is previous": {
			set: []func(*jobsetv1alpha2.JobSet){restartedJob}, gates: gates.Gates{RestartJob: true},
			jobs: []*batchv1.Job{
				jobNamed("w", 0, label(jobsetv1alpha2.JobRestartAttemptKey, "0")), jobNamed("w", 1, label(jobsetv1alpha2.JobRestartAttemptKey, "0")),
			},
			want: meanings{Active: []string{"js-w-0"}, Previous: []string{"js-w-1"}},
		},
		"with RestartJob a Job created before the feature was on is in its first attempt": {
			set: []func(*jobsetv1alpha2.JobSet){restartedJob}, gates: gates.Gates{RestartJob: true},
			jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, jobFailed)},
			want: meanings{Active: []string{"js-w-0"}, Previous: []string{"js-w-1"}},
		},
		"with RestartJob a counter of the Job that is no number leaves it alone": {
			gates: gates.Gates{RestartJob: true},
			jobs:  []*batchv1.Job{jobNamed("w", 1, label(jobsetv1alpha2.JobRestartAttemptKey, "-1"))},
			want: meanings{Problems: []string{
				`job "js-w-1" is ignored: label jobset.sigs.k8s.io/job-restart-attempt must be a number of 0 or more, not "-1"`}},
		},
		"without RestartJob a Job that was restarted on request is previous too": {
			set:  []func(*jobsetv1alpha2.JobSet){restartedJob},
			jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
			want: meanings{Active: []string{"js-w-0"}, Previous: []string{"js-w-1"}},
		},
		"without RestartJob the label of a Job none of whose like was restarted does not matter": {
			jobs: []*batchv1.Job{jobNamed("w", 1, label(jobsetv1alpha2.JobRestartAttemptKey, "-1"))},
			want: meanings{Active: []string{"js-w-1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 3))...), tc.jobs...)
			o.Gates = tc.gates
			owned := classify(indexed(o))
			diff(t, "children", tc.want, meanings{names(owned.previous), names(owned.succeeded), names(owned.failed), names(owned.active), owned.problems})
			for _, job := range tc.jobs {
				if !owned.names.Has(job.Name) {
					t.Errorf("the name %s counts as free", job.Name)
				}
			}
		})
	}
}
