// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

func TestFailureVerdict(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	type rule = jobsetv1alpha2.FailurePolicyRule
	const (
		failSet = jobsetv1alpha2.FailJobSet
		restart = jobsetv1alpha2.RestartJobSet
		free    = jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts
	)
	backoff := failedWith("BackoffLimitExceeded", "Job has reached the specified backoff limit", 5)
	for name, tc := range map[string]struct {
		set     []set
		gates   gates.Gates
		jobs    []*batchv1.Job
		action  jobsetv1alpha2.FailurePolicyAction
		reason  string
		message string
	}{
		"without a policy the set fails": {
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "FailedJobs",
			message: "jobset failed due to one or more job failures (first failed job: js-w-0)",
		},
		"the Job that failed first is named": {
			jobs:   []*batchv1.Job{jobNamed("w", 0, failedWith("", "", 9)), jobNamed("w", 1, failedWith("", "", 3)), jobNamed("w", 2, failedWith("", "", 4))},
			action: failSet, reason: "FailedJobs",
			message: "jobset failed due to one or more job failures (first failed job: js-w-1)",
		},
		"of Jobs that failed at the same time the first by name is named": {
			jobs:   []*batchv1.Job{jobNamed("w", 2, backoff), jobNamed("w", 1, backoff)},
			action: failSet, reason: "FailedJobs",
			message: "jobset failed due to one or more job failures (first failed job: js-w-1)",
		},
		"a policy without rules restarts the set": {
			set:    []set{failurePolicy(1)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"maxRestarts 0 fails the set at the first failure": {
			set:    []set{failurePolicy(0)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
		"negative maxRestarts behave like 0": {
			set:    []set{failurePolicy(-3)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
		"the failure after the last counted restart fails the set": {
			set:    []set{failurePolicy(2), restarted(5, 2)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("5"))},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
		"restarts that do not count leave the budget": {
			set:    []set{failurePolicy(2), restarted(5, 1)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("5"))},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"restarts granted by a retry are on top of those of the policy": {
			set:    []set{failurePolicy(2), restarted(5, 4), granted(3)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("5"))},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"restarts granted by a retry are used up too": {
			set:    []set{failurePolicy(2), restarted(5, 5), granted(3)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("5"))},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
		"restarts of single Jobs on request count without the feature too": {
			set: []set{failurePolicy(1), func(js *jobsetv1alpha2.JobSet) {
				js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{0, 1, 0}, JobRestartsCountTowardsMax: []int32{0, 1, 0}}}
			}},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
		"an uncounted restart has no limit": {
			set:    []set{failurePolicy(0, rule{Name: "free", Action: free}), restarted(9, 0)},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("9"))},
			action: free, reason: "FailurePolicy_free",
			message: "applying RestartJobSetAndIgnoreMaxRestarts failure policy action (first failed job: js-w-0)",
		},
		"a rule that fails the set wins over the budget": {
			set:    []set{failurePolicy(3, rule{Name: "final", Action: failSet})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "FailJobSetFailurePolicyAction",
			message: "applying FailJobSet failure policy action (first failed job: js-w-0)",
		},
		"the first rule that matches wins": {
			set:    []set{failurePolicy(3, rule{Name: "one", Action: restart}, rule{Name: "two", Action: failSet})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "FailurePolicy_one",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"a rule names the first Job that it matches, not the first that failed": {
			set:    []set{failurePolicy(3, rule{Name: "a", Action: failSet, TargetReplicatedJobs: []string{"a"}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, failedWith("", "", 1)), jobNamed("a", 0, failedWith("", "", 2))},
			action: failSet, reason: "FailJobSetFailurePolicyAction",
			message: "applying FailJobSet failure policy action (first failed job: js-a-0)",
		},
		"a rule for another replicatedJob does not match": {
			set:    []set{failurePolicy(3, rule{Name: "a", Action: failSet, TargetReplicatedJobs: []string{"a"}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"a rule for another reason does not match": {
			set:    []set{failurePolicy(3, rule{Name: "r", Action: failSet, OnJobFailureReasons: []string{"DeadlineExceeded"}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"a pattern matches anywhere in the message": {
			set: []set{failurePolicy(3, rule{Name: "p", Action: failSet, OnJobFailureReasons: []string{"BackoffLimitExceeded"},
				OnJobFailureMessagePatterns: []string{"nothing", "specified back.ff"}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "FailJobSetFailurePolicyAction",
			message: "applying FailJobSet failure policy action (first failed job: js-w-0)",
		},
		"a reason that matches is not enough when the message does not": {
			set: []set{failurePolicy(3, rule{Name: "p", Action: failSet, OnJobFailureReasons: []string{"BackoffLimitExceeded"},
				OnJobFailureMessagePatterns: []string{"^limit"}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"patterns that do not compile match nothing": {
			set:    []set{failurePolicy(3, rule{Name: "p", Action: failSet, OnJobFailureMessagePatterns: []string{"("}})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: restart, reason: "DefaultFailurePolicy",
			message: "applying RestartJobSet failure policy action (first failed job: js-w-0)",
		},
		"a rule whose feature is off counts as absent": {
			set:    []set{failurePolicy(3, rule{Name: "j", Action: jobsetv1alpha2.RestartJob}, rule{Name: "f", Action: failSet})},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff)},
			action: failSet, reason: "FailJobSetFailurePolicyAction",
			message: "applying FailJobSet failure policy action (first failed job: js-w-0)",
		},
		"with RestartJob the restarts of single Jobs count too": {
			set: []set{failurePolicy(2, rule{Name: "j", Action: jobsetv1alpha2.RestartJob}), restarted(1, 1), func(js *jobsetv1alpha2.JobSet) {
				js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{0, 1, 0}, JobRestartsCountTowardsMax: []int32{0, 1, 0}}}
			}},
			gates:  gates.Gates{RestartJob: true},
			jobs:   []*batchv1.Job{jobNamed("w", 0, backoff, attempt("1"), label(jobsetv1alpha2.JobRestartAttemptKey, "0"))},
			action: failSet, reason: "ReachedMaxRestarts",
			message: "jobset failed due to reaching max number of restarts (first failed job: js-w-0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("a", 1), with("w", 3))...), tc.jobs...)
			o.Gates = tc.gates
			o = indexed(o)
			v := failureVerdict(o, classify(o))
			type result struct{ Action, Reason, Message string }
			diff(t, "verdict", result{string(tc.action), tc.reason, tc.message}, result{string(v.Action), v.Reason, v.Message})
		})
	}
}
