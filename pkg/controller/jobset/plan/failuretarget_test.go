// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestJobsThatAreBoundToFail(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	rule := func(action jobsetv1alpha2.FailurePolicyAction, reason string) jobsetv1alpha2.FailurePolicyRule {
		return jobsetv1alpha2.FailurePolicyRule{Name: "r", Action: action, OnJobFailureReasons: []string{reason}}
	}
	soon := []*batchv1.Job{jobNamed("w", 0, failureTarget("PodFailurePolicy", 3)), jobNamed("w", 1)}
	restarts := summary{
		Restarts: 1, Counted: 1, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"},
		Events: []string{"Warning DefaultFailurePolicy", "Warning RestartJobSetFailurePolicyAction"},
	}
	byRule := summary{
		Restarts: 1, Conditions: []string{"RestartingJobSet=True FailurePolicy_r"},
		Events: []string{"Warning FailurePolicy_r", "Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"},
	}
	fails := summary{Status: "Failed", Conditions: []string{"Failed=True FailJobSetFailurePolicyAction"}, Events: []string{"Warning FailJobSetFailurePolicyAction"}}
	for name, tc := range map[string]struct {
		off  bool
		set  []set
		jobs []*batchv1.Job
		want summary
	}{
		"restart the set": {set: []set{failurePolicy(1)}, jobs: soon, want: restarts},
		"restart a set that was about to be up again, which is restarting still": {
			set: []set{failurePolicy(2), restarted(1, 1), restartingFor("js-w-0")}, jobs: []*batchv1.Job{jobNamed("w", 0, attempt("1"), failureTarget("x", 1)), jobNamed("w", 1, attempt("1"), ready)},
			want: summary{Restarts: 2, Counted: 2, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"}, Events: []string{"Warning RestartJobSetFailurePolicyAction"}}},
		"restart nothing without the feature":      {off: true, set: []set{failurePolicy(1)}, jobs: soon},
		"do not fail a set without policy":         {jobs: soon},
		"do not fail a set without restarts left":  {set: []set{failurePolicy(0)}, jobs: soon},
		"do not fail a set by a rule":              {set: []set{failurePolicy(1, rule(jobsetv1alpha2.FailJobSet, "PodFailurePolicy"))}, jobs: soon},
		"restart nothing in a suspended set":       {set: []set{failurePolicy(1), isSuspended, wasSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, failureTarget("x", 3), jobIsSuspended), jobNamed("w", 1, jobIsSuspended)}, want: summary{Conditions: []string{"Suspended=True SuspendedJobs"}}},
		"are matched by the reason that they have": {set: []set{failurePolicy(1, rule(jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts, "PodFailurePolicy"))}, jobs: soon, want: byRule},
		"leave what has failed to fail the set": {
			set: []set{failurePolicy(0)}, jobs: []*batchv1.Job{jobNamed("w", 0, failureTarget("x", 1)), jobNamed("w", 1, failedWith("y", "", 2))},
			want: summary{Status: "Failed", Conditions: []string{"Failed=True ReachedMaxRestarts"}, Events: []string{"Warning ReachedMaxRestarts"}}},
		"do not fail a set that restarts on account of what has failed": {
			set: []set{failurePolicy(1, rule(jobsetv1alpha2.FailJobSet, "x"))}, jobs: []*batchv1.Job{jobNamed("w", 0, failureTarget("x", 1)), jobNamed("w", 1, failedWith("y", "", 2))},
			want: restarts},
		"fail the set when they have failed": {
			set: []set{failurePolicy(1, rule(jobsetv1alpha2.FailJobSet, "x"))}, jobs: []*batchv1.Job{jobNamed("w", 0, failureTarget("x", 1), failedWith("x", "", 2)), jobNamed("w", 1)},
			want: fails},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 2))...), tc.jobs...)
			o.Gates.RestartOnFailureTarget = !tc.off
			diff(t, "plan", tc.want, summarize(o, Decide(o)))
		})
	}
}

func restartingFor(job string) func(*jobsetv1alpha2.JobSet) {
	return withCondition(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy",
		"applying RestartJobSet failure policy action (first failed job: "+job+")")
}

func TestJobsThatAreBoundToFailCountAsActive(t *testing.T) {
	o := observe(newSet(with("w", 1), failurePolicy(1)), jobNamed("w", 0, failureTarget("x", 0)))
	o.Gates.RestartOnFailureTarget = true
	want := []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 1, Active: 1}}
	diff(t, "counters", want, Decide(o).Status.ReplicatedJobsStatus)
}
