// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

func rule(change func(*jobset.FailurePolicyRule)) func(*jobset.JobSet) {
	r := jobset.FailurePolicyRule{Name: "r", Action: jobset.RestartJobSet}
	change(&r)
	return withRules(r)
}

func TestFailurePolicy(t *testing.T) {
	const (
		badName = "must start with a letter, contain only letters, digits, '_', ',' and ':', and not end with ',' or ':'"
		gateOff = " while the feature gate RestartJob of the API server is off: use RestartJobSet"
	)
	named := func(name string) func(*jobset.JobSet) {
		return rule(func(r *jobset.FailurePolicyRule) { r.Name = name })
	}
	runRules(t, map[string]ruleCase{
		"3.4-1 InPlaceRestart with its gate off": {
			change: func(js *jobset.JobSet) {
				js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.RestartStrategyInPlaceRestart}
			},
			want: only("spec.failurePolicy.restartStrategy", forbidden,
				"must not be InPlaceRestart while the feature gate InPlaceRestart of the API server is off: use Recreate or BlockingRecreate"),
		},
		"3.4-7a RestartJob with its gate off ends the checks of the policy": {
			change: withRules(
				jobset.FailurePolicyRule{Name: "0", Action: jobset.RestartJobSet},
				jobset.FailurePolicyRule{Name: "r", Action: jobset.RestartJob},
				jobset.FailurePolicyRule{Name: "s", Action: jobset.RestartJobAndIgnoreMaxRestarts}),
			want: []refusal{
				{"spec.failurePolicy.rules[1].action", forbidden, "must not be RestartJob" + gateOff},
				{"spec.failurePolicy.rules[2].action", forbidden, "must not be RestartJobAndIgnoreMaxRestarts" + gateOff},
			},
		},
		"3.4-7b more Jobs than single restarts are counted for, told once": {
			change: func(js *jobset.JobSet) {
				withRules(
					jobset.FailurePolicyRule{Name: "r", Action: jobset.RestartJob},
					jobset.FailurePolicyRule{Name: "s", Action: jobset.RestartJobAndIgnoreMaxRestarts})(js)
				js.Spec.ReplicatedJobs[0].Replicas, js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](1025), ptr.To[int32](1025)
			},
			opts: allGates,
			want: only("spec.replicatedJobs[0].replicas", invalid, "must be at most 1024 if a rule of the failure policy restarts single Jobs"),
		},
		"3.4-7b 1024 Jobs pass": {
			change: func(js *jobset.JobSet) {
				withRules(jobset.FailurePolicyRule{Name: "r", Action: jobset.RestartJob})(js)
				js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](1024)
			},
			opts: allGates,
		},
		"3.4-7c a name of 129 characters":      {change: named(strings.Repeat("a", 129)), want: only("spec.failurePolicy.rules[0].name", tooLong, "may not be more than 128 bytes")},
		"3.4-7c a name of 128 characters pass": {change: named(strings.Repeat("a", 128))},
		"3.4-7d a name that begins with a digit": {
			change: named("0"), want: only("spec.failurePolicy.rules[0].name", invalid, badName),
		},
		"3.4-7d a name that ends with a colon": {
			change: named("a:"), want: only("spec.failurePolicy.rules[0].name", invalid, badName),
		},
		"3.4-7d a name with a line break at its end": {
			change: named("a\n"), want: only("spec.failurePolicy.rules[0].name", invalid, badName),
		},
		"3.4-7e an unknown target": {
			change: rule(func(r *jobset.FailurePolicyRule) { r.TargetReplicatedJobs = []string{"workers", "nobody"} }),
			want:   only("spec.failurePolicy.rules[0].targetReplicatedJobs[1]", invalid, target),
		},
		"3.4-7f an unknown reason": {
			change: rule(func(r *jobset.FailurePolicyRule) {
				r.OnJobFailureReasons = []string{batchv1.JobReasonPodFailurePolicy, "Bored"}
			}),
			want: only("spec.failurePolicy.rules[0].onJobFailureReasons[1]", notSupported,
				`supported values: "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"`),
		},
		"3.4-7f a reason twice passes, as upstream": {
			change: rule(func(r *jobset.FailurePolicyRule) {
				r.OnJobFailureReasons = []string{batchv1.JobReasonPodFailurePolicy, batchv1.JobReasonPodFailurePolicy}
			}),
		},
		"3.4-7g a name that three rules have, told once": {
			change: withRules(
				jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet}, jobset.FailurePolicyRule{Name: "s", Action: jobset.FailJobSet},
				jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet}, jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet}),
			want: only("spec.failurePolicy.rules[2].name", duplicate, "must be unique in the policy, but rules [0 2 3] have it"),
		},
		"own a pattern that does not compile": {
			change: rule(func(r *jobset.FailurePolicyRule) { r.OnJobFailureMessagePatterns = []string{"ok", "exit code (1"} }),
			want: only("spec.failurePolicy.rules[0].onJobFailureMessagePatterns[1]", invalid,
				"must be an RE2 regular expression: missing closing ): `exit code (1`"),
		},
		"own a pattern with a look-ahead, which RE2 lacks": {
			change: rule(func(r *jobset.FailurePolicyRule) { r.OnJobFailureMessagePatterns = []string{"(?=a)"} }),
			want: only("spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]", invalid,
				"must be an RE2 regular expression: invalid or unsupported Perl syntax: `(?=`"),
		},
	})
}

func TestInPlaceRestart(t *testing.T) {
	const path = "spec.replicatedJobs[0].template.spec."
	inPlace := func(change func(*batchv1.JobSpec)) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs = js.Spec.ReplicatedJobs[:1]
			js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.RestartStrategyInPlaceRestart}
			job := &js.Spec.ReplicatedJobs[0].Template.Spec
			job.BackoffLimit, job.PodReplacementPolicy = ptr.To[int32](math.MaxInt32), ptr.To(batchv1.Failed)
			change(job)
		}
	}
	refused := func(field, detail string) []refusal { return only(path+field, invalid, detail) }
	const (
		limit       = "must be 2147483647 with the restart strategy InPlaceRestart"
		replacement = "must be Failed with the restart strategy InPlaceRestart"
		completions = "must be set and equal to parallelism with the restart strategy InPlaceRestart"
	)
	cases := map[string]ruleCase{
		"3.4-5f another backoffLimit":            {change: inPlace(func(j *batchv1.JobSpec) { j.BackoffLimit = ptr.To[int32](6) }), want: refused("backoffLimit", limit)},
		"3.4-5f no backoffLimit":                 {change: inPlace(func(j *batchv1.JobSpec) { j.BackoffLimit = nil }), want: refused("backoffLimit", limit)},
		"3.4-5g another podReplacementPolicy":    {change: inPlace(func(j *batchv1.JobSpec) { *j.PodReplacementPolicy = batchv1.TerminatingOrFailed }), want: refused("podReplacementPolicy", replacement)},
		"3.4-5g no podReplacementPolicy":         {change: inPlace(func(j *batchv1.JobSpec) { j.PodReplacementPolicy = nil }), want: refused("podReplacementPolicy", replacement)},
		"3.4-5h completions unlike parallelism":  {change: inPlace(func(j *batchv1.JobSpec) { j.Completions = ptr.To[int32](2) }), want: refused("completions", completions)},
		"3.4-5h no completions":                  {change: inPlace(func(j *batchv1.JobSpec) { j.Completions = nil }), want: refused("completions", completions)},
		"3.4-5h no parallelism":                  {change: inPlace(func(j *batchv1.JobSpec) { j.Parallelism = nil }), want: refused("completions", completions)},
		"3.4-5f 3.4-5g 3.4-5h all in place pass": {change: inPlace(func(*batchv1.JobSpec) {})},
	}
	for name, tc := range cases {
		tc.opts = gates.Gates{InPlaceRestart: true}
		cases[name] = tc
	}
	runRules(t, cases)
}
