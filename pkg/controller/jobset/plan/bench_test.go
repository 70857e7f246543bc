// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// situation is one that decisions about a set of any size are made in.
type situation struct {
	// set is what the set has beside its replicatedJobs.
	set []func(*jobsetv1alpha2.JobSet)
	// job is what every Job is like; nil for a set without Jobs.
	job func(*batchv1.Job)
	// last is what the last Job is like, if it is not like the others.
	last func(*batchv1.Job)
}

var restartEachJob = failurePolicy(1_000_000, jobsetv1alpha2.FailurePolicyRule{Name: "j", Action: jobsetv1alpha2.RestartJob})

// situations are sets for which different parts of a decision do the work.
var situations = map[string]situation{
	"created":      {},
	"running":      {job: ready},
	"in order":     {set: []func(*jobsetv1alpha2.JobSet){inOrder}, job: ready},
	"depending":    {set: []func(*jobsetv1alpha2.JobSet){dependingOnFirst}, job: ready},
	"suspended":    {set: []func(*jobsetv1alpha2.JobSet){isSuspended}, job: ready},
	"resumed":      {job: jobIsSuspended, set: []func(*jobsetv1alpha2.JobSet){func(js *jobsetv1alpha2.JobSet) { js.Generation = 2 }}},
	"restarted":    {set: []func(*jobsetv1alpha2.JobSet){failurePolicy(1), restarted(1, 1)}, job: ready},
	"succeeded":    {job: succeeded},
	"one failed":   {set: []func(*jobsetv1alpha2.JobSet){failurePolicy(1)}, job: ready, last: jobFailed},
	"all failed":   {set: []func(*jobsetv1alpha2.JobSet){restartEachJob}, job: jobFailed},
	"job restarts": {set: []func(*jobsetv1alpha2.JobSet){restartEachJob, jobsWereRestarted}, job: ready},
}

func dependingOnFirst(js *jobsetv1alpha2.JobSet) {
	for i := range js.Spec.ReplicatedJobs {
		if i > 0 {
			dependsOn(js.Spec.ReplicatedJobs[0].Name, jobsetv1alpha2.DependencyReady)(&js.Spec.ReplicatedJobs[i])
		}
	}
}

func jobsWereRestarted(js *jobsetv1alpha2.JobSet) {
	for i := range js.Status.ReplicatedJobsStatus {
		js.Status.ReplicatedJobsStatus[i].JobRestarts = []int32{0}
	}
}

// of returns the situation of a set of so many replicatedJobs, with so many Jobs each.
func (s situation) of(replicatedJobs, jobs int) Observed {
	js := newSet()
	var children []*batchv1.Job
	for i := range replicatedJobs {
		name := fmt.Sprint("w", i)
		with(name, int32(jobs))(js)
		js.Status.ReplicatedJobsStatus = append(js.Status.ReplicatedJobsStatus, jobsetv1alpha2.ReplicatedJobStatus{Name: name})
		for n := range jobs {
			switch {
			case s.last != nil && i == replicatedJobs-1 && n == jobs-1:
				children = append(children, jobNamed(name, n, s.last))
			case s.job != nil:
				children = append(children, jobNamed(name, n, s.job))
			}
		}
	}
	for _, change := range s.set {
		change(js)
	}
	o := observe(js, children...)
	o.KeepAttempts = true
	o.Gates = gates.Gates{RestartJob: js.Spec.FailurePolicy != nil && len(js.Spec.FailurePolicy.Rules) > 0}
	o.Deferred = Deferred{UID: js.UID, Times: now.Add(-time.Second)}
	js.Spec.Suspend = ptr.To(suspended(js))
	return o
}

// BenchmarkDecide decides about sets of 400 to 10,000 Jobs.
func BenchmarkDecide(b *testing.B) {
	for name, s := range situations {
		for _, size := range [][2]int{{1, 400}, {1, 2000}, {1, 10_000}, {400, 1}, {2000, 1}, {10_000, 1}} {
			o := s.of(size[0], size[1])
			b.Run(fmt.Sprintf("%s/replicatedJobs=%d/jobs=%d", name, size[0], size[0]*size[1]), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Finish(o, Decide(o), Results{})
				}
			})
		}
	}
}

// BenchmarkPass decides about sets of 10,000 Jobs, and answers that nothing can be obtained.
func BenchmarkPass(b *testing.B) {
	for _, name := range []string{"running", "restarted", "one failed", "succeeded"} {
		for _, size := range [][2]int{{1, 10_000}, {10_000, 1}} {
			b.Run(fmt.Sprintf("%s/replicatedJobs=%d", name, size[0]), func(b *testing.B) {
				known := situations[name].of(size[0], size[1])
				open := Observed{
					JobSet: known.JobSet, Jobs: known.Jobs, ServiceExists: true, Claims: known.Claims, Now: known.Now, KeepAttempts: true,
					Gates: known.Gates, Deferred: known.Deferred,
				}
				b.ReportAllocs()
				for b.Loop() {
					o := open
					p := Decide(o)
					if !p.Asks.Empty() {
						o = known
						p = Decide(o)
					}
					Finish(o, p, Results{})
				}
			})
		}
	}
}
