// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// TestOneWriteRestartsAllMatchingJobs stores what is decided until nothing is, and compares that with the restarts of
// one Job after the other.
func TestOneWriteRestartsAllMatchingJobs(t *testing.T) {
	type rule = jobsetv1alpha2.FailurePolicyRule
	const (
		restart = jobsetv1alpha2.RestartJob
		free    = jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts
	)
	onlyA := []string{"a"}
	// The Jobs fail in the order a-2, w-0, a-0, w-1, a-1.
	jobs := []*batchv1.Job{
		jobNamed("a", 0, failedWith("", "", 3)), jobNamed("a", 1, failedWith("", "", 5)), jobNamed("a", 2, failedWith("", "", 1)),
		jobNamed("w", 0, failedWith("", "", 2)), jobNamed("w", 1, failedWith("", "", 4)),
	}
	for name, tc := range map[string]struct {
		max    int32
		rules  []rule
		jobs   []*batchv1.Job
		writes int
		// restarts are the restarts of a and then of w, and counted the restarts that count towards the maximum.
		restarts, counted [][]int32
		message           string
	}{
		"all of one rule": {
			max: 5, rules: []rule{{Name: "r", Action: restart}}, jobs: jobs, writes: 1,
			restarts: [][]int32{{1, 1, 1}, {1, 1}}, counted: [][]int32{{1, 1, 1}, {1, 1}},
		},
		"a maximum in the middle": {
			max: 3, rules: []rule{{Name: "r", Action: restart}}, jobs: jobs, writes: 2,
			restarts: [][]int32{{1, 0, 1}, {1, 0}}, counted: [][]int32{{1, 0, 1}, {1, 0}},
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-1)",
		},
		"no maximum": {
			max: 0, rules: []rule{{Name: "r", Action: free}}, jobs: jobs, writes: 1,
			restarts: [][]int32{{1, 1, 1}, {1, 1}}, counted: [][]int32{nil, nil},
		},
		"one rule after the other": {
			max: 4, rules: []rule{{Name: "a", Action: restart, TargetReplicatedJobs: onlyA}, {Name: "w", Action: free}}, jobs: jobs, writes: 2,
			restarts: [][]int32{{1, 1, 1}, {1, 1}}, counted: [][]int32{{1, 1, 1}, nil},
		},
		"a rule that ends the set comes after the first": {
			max: 4, rules: []rule{{Name: "a", Action: free, TargetReplicatedJobs: onlyA}, {Name: "w", Action: jobsetv1alpha2.FailJobSet}}, jobs: jobs, writes: 2,
			restarts: [][]int32{{1, 1, 1}, nil}, counted: [][]int32{nil, nil},
			message: "applying FailJobSet failure policy action (first failed job: js-w-0)",
		},
		"Jobs that are bound to fail, too": {
			max: 4, rules: []rule{{Name: "r", Action: restart}}, writes: 1,
			jobs:     []*batchv1.Job{jobNamed("a", 0, failureTarget("", 1)), jobNamed("a", 1, ready), jobNamed("w", 0, failedWith("", "", 2))},
			restarts: [][]int32{{1, 0, 0}, {1, 0}}, counted: [][]int32{{1, 0, 0}, {1, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(failurePolicy(tc.max, tc.rules...), with("a", 3), with("w", 2)), tc.jobs...)
			o.Gates = gates.Gates{RestartJob: true, RestartOnFailureTarget: true}
			writes := 0
			for ; writes < 10; writes++ {
				before := o.JobSet
				p := Decide(o)
				if p.Status == nil || before.Status.TerminalState != "" || len(p.DeleteJobs) > 0 {
					break
				}
				o.JobSet = before.DeepCopy()
				o.JobSet.Status = *p.Status
			}
			diff(t, "writes", tc.writes, writes)
			counts := byName(o.JobSet.Status.ReplicatedJobsStatus)
			diff(t, "restarts", tc.restarts, [][]int32{counts["a"].JobRestarts, counts["w"].JobRestarts})
			diff(t, "restarts that count", tc.counted, [][]int32{counts["a"].JobRestartsCountTowardsMax, counts["w"].JobRestartsCountTowardsMax})
			message := ""
			if c := finishedCondition(&o.JobSet.Status); c != nil {
				message = c.Message
			}
			diff(t, "end of the set", tc.message, message)
		})
	}
}

// TestMassFailureIsOneAttempt lets a thousand Jobs fail.
func TestMassFailureIsOneAttempt(t *testing.T) {
	const many = 1000
	js := newSet(failurePolicy(5*many, jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: jobsetv1alpha2.RestartJob}), with("a", 1), with("w", many))
	js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet}}
	var jobs []*batchv1.Job
	for i := range many {
		jobs = append(jobs, jobNamed("w", i, failedWith("BackoffLimitExceeded", "", many-i)))
	}
	o := observe(js, append(jobs, jobNamed("a", 0, ready))...)
	o.Gates = gates.Gates{RestartJob: true}
	o.KeepAttempts = true
	p := Decide(o)
	const message = "applying RestartJob failure policy action to 1000 jobs (first failed job: js-w-999)"
	diff(t, "events", []Event{{Type: "Warning", Reason: "RestartJobFailurePolicyAction", Note: message}}, p.Events)
	diff(t, "Job whose pods are read", "js-w-999", causeAsked(o).Name)
	diff(t, "number of attempts", 2, len(p.Status.Attempts))
	got := p.Status.Attempts[1]
	got.RequestTime = nil
	diff(t, "attempt", jobsetv1alpha2.Attempt{
		Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeReplicatedJob, ReplicatedJob: "w", Rule: "r", Reason: message,
	}, got)
	next := js.DeepCopy()
	next.Status = *p.Status
	o.JobSet = next
	diff(t, "Jobs deleted next", many, len(Decide(o).DeleteJobs))

	o.JobSet, o.Jobs = js, append(jobs[:2:2], jobNamed("a", 0, ready))
	p = Decide(o)
	got = p.Status.Attempts[1]
	got.RequestTime = nil
	diff(t, "attempt of a part of the Jobs", jobsetv1alpha2.Attempt{
		Number: 2, Trigger: jobsetv1alpha2.TriggerFailurePolicy, Scope: jobsetv1alpha2.ScopeJob, ReplicatedJob: "w", JobIndex: ptr.To[int32](1), Rule: "r",
		Reason: "applying RestartJob failure policy action to 2 jobs (first failed job: js-w-1)",
	}, got)
}

func TestRestartOfASingleJob(t *testing.T) {
	rule := func(action jobsetv1alpha2.FailurePolicyAction) jobsetv1alpha2.FailurePolicyRule {
		return jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: action}
	}
	attempts := func(n string) func(*batchv1.Job) { return label(jobsetv1alpha2.JobRestartAttemptKey, n) }
	o := observe(newSet(with("w", 2), failurePolicy(1, rule(jobsetv1alpha2.RestartJob))),
		jobNamed("w", 0, attempts("0"), ready), jobNamed("w", 1, attempts("0"), jobFailed))
	o.Gates.RestartJob = true
	p := Decide(o)
	diff(t, "status", &jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{
		{Name: "w", Ready: 1, Active: 1, Failed: 1, JobRestarts: []int32{0, 1}, JobRestartsCountTowardsMax: []int32{0, 1}},
	}}, p.Status)
	diff(t, "events", []Event{{Type: "Warning", Reason: "RestartJobFailurePolicyAction",
		Note: "applying RestartJob failure policy action (first failed job: js-w-1)"}}, p.Events)

	o.JobSet.Status = *p.Status
	p = Decide(o)
	diff(t, "deletions", []string{"js-w-1"}, refNames(p.DeleteJobs))

	o.Jobs = o.Jobs[:1]
	p = Decide(o)
	diff(t, "creations", []string{"js-w-1"}, names(p.CreateJobs))
	diff(t, "attempt of the new Job", "1", p.CreateJobs[0].Labels[jobsetv1alpha2.JobRestartAttemptKey])

	o.Jobs = append(o.Jobs, jobNamed("w", 1, attempts("1"), jobFailed))
	diff(t, "the budget is used up", jobsetv1alpha2.TerminalStateFailed, Decide(o).Status.TerminalState)

	o.JobSet.Spec.FailurePolicy.Rules = []jobsetv1alpha2.FailurePolicyRule{rule(jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts)}
	got := Decide(o).Status.ReplicatedJobsStatus[0]
	diff(t, "uncounted restart", [][]int32{{0, 2}, {0, 1}}, [][]int32{got.JobRestarts, got.JobRestartsCountTowardsMax})
}
