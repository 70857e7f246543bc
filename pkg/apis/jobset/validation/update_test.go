// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

type updateCase struct {
	stored func(*jobset.JobSet)
	change func(*jobset.JobSet)
	opts   gates.Gates
	want   []refusal
}

func runUpdates(t *testing.T, cases map[string]updateCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev := train()
			if tc.stored != nil {
				tc.stored(prev)
			}
			next := prev.DeepCopy()
			tc.change(next)
			wantNext, wantPrev := next.DeepCopy(), prev.DeepCopy()
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetUpdate(next, prev, tc.opts))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]*jobset.JobSet{wantNext, wantPrev}, []*jobset.JobSet{next, prev}); diff != "" {
				t.Errorf("validation changed its arguments:\n%s", diff)
			}
		})
	}
}

func resize(parallelism, completions *int32) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		job := &js.Spec.ReplicatedJobs[1].Template.Spec
		job.Parallelism, job.Completions = parallelism, completions
	}
}

func finishedAs(condition string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
	}
}

const (
	immutable = "cannot be changed after creation; delete and recreate the JobSet"
	late      = "cannot be changed after the JobSet has finished; delete and recreate the JobSet"
)

func TestElasticUpdate(t *testing.T) {
	elastic := gates.Gates{ElasticJobSet: true}
	const job = "spec.replicatedJobs[1].template.spec"
	const equal = "completions must be equal to parallelism for Elastic Indexed Jobs, which is 4: change both"
	const stop = "; suspend the JobSet to stop its pods"
	nonIndexed := func(js *jobset.JobSet) {
		js.Spec.ReplicatedJobs[1].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	}
	runUpdates(t, map[string]updateCase{
		"3.5-2 both sizes grow together":  {change: resize(ptr.To[int32](8), ptr.To[int32](8)), opts: elastic},
		"3.5-2 both sizes shrink to one":  {change: resize(ptr.To[int32](1), ptr.To[int32](1)), opts: elastic},
		"3.5-2 only completions stay set": {change: resize(nil, ptr.To[int32](4)), opts: elastic},
		"own both sizes are removed": {
			change: resize(nil, nil), opts: elastic,
			want: only(job+".completions", required, "must be set: a Job with completionMode Indexed needs completions"),
		},
		"own both sizes stay absent": {stored: resize(nil, nil), change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }, opts: elastic},
		"3.5-2 the set is Completed": {
			stored: finishedAs("Completed"), change: resize(ptr.To[int32](8), ptr.To[int32](8)), opts: elastic,
			want: only(job, forbidden, "parallelism and completions "+late),
		},
		"3.5-2 the set is Failed": {
			stored: finishedAs("Failed"), change: resize(ptr.To[int32](8), ptr.To[int32](8)), opts: elastic,
			want: only(job, forbidden, "parallelism and completions "+late),
		},
		"3.5-2 no parallelism and no completions left": {
			change: resize(ptr.To[int32](0), ptr.To[int32](0)), opts: elastic,
			want: []refusal{
				{job + ".parallelism", invalid, "parallelism must be >= 1" + stop},
				{job + ".completions", invalid, "completions must be >= 1" + stop},
			},
		},
		"3.5-2 completions below one, parallelism absent": {
			stored: resize(nil, ptr.To[int32](4)), change: resize(nil, ptr.To[int32](-1)), opts: elastic,
			want: []refusal{
				{job + ".completions", invalid, "completions must be >= 1" + stop},
				{job + ".completions", invalid, "must be 0 or more"},
			},
		},
		"3.5-2 unequal sizes": {
			change: resize(ptr.To[int32](4), ptr.To[int32](5)), opts: elastic,
			want: only(job+".completions", invalid, equal),
		},
		"3.5-2 a NonIndexed Job keeps its size": {
			stored: nonIndexed, change: resize(ptr.To[int32](8), ptr.To[int32](8)), opts: elastic,
			want: []refusal{
				{job + ".parallelism", invalid, "was 4; field is immutable unless completionMode is Indexed; delete and recreate the JobSet"},
				{job + ".completions", invalid, "was 4; field is immutable unless completionMode is Indexed; delete and recreate the JobSet"},
			},
		},
		"3.5-2 with the gate off Jobs keep their size": {
			change: resize(ptr.To[int32](8), ptr.To[int32](8)),
			want: []refusal{
				{job + ".parallelism", invalid, "was 4; field is immutable while the feature gate ElasticJobSet of the API server is off; delete and recreate the JobSet"},
				{job + ".completions", invalid, "was 4; field is immutable while the feature gate ElasticJobSet of the API server is off; delete and recreate the JobSet"},
			},
		},
		"3.5-2 the rest of the Job stays immutable": {
			change: func(js *jobset.JobSet) {
				resize(ptr.To[int32](8), ptr.To[int32](8))(js)
				js.Spec.ReplicatedJobs[1].Template.Spec.BackoffLimit = ptr.To[int32](1)
			},
			opts: elastic,
			want: only(job+".backoffLimit", invalid, "was not set; field is immutable: "+immutable),
		},
		"own the coordinator's pod must not be cut off": {
			stored: func(js *jobset.JobSet) {
				js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "workers", PodIndex: 3}
			},
			change: resize(ptr.To[int32](2), ptr.To[int32](2)), opts: elastic,
			want: only("spec.coordinator.podIndex", invalid, `must be from 0 to 1, because "workers" has completions: 2`),
		},
	})
}

func TestImmutableSections(t *testing.T) {
	full := func(js *jobset.JobSet) {
		withClaims("data")(js)
		withRules(jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet})(js)
		js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher", Status: jobset.DependencyReady}}
	}
	bare := func(js *jobset.JobSet) { js.Spec = jobset.JobSetSpec{ReplicatedJobs: js.Spec.ReplicatedJobs} }
	runUpdates(t, map[string]updateCase{
		"3.5-6 network changes": {
			change: func(js *jobset.JobSet) { js.Spec.Network.Subdomain = "mesh" },
			want:   only("spec.network.subdomain", invalid, "was not set; "+immutable),
		},
		"3.5-6 successPolicy changes": {
			change: func(js *jobset.JobSet) { js.Spec.SuccessPolicy.Operator = jobset.OperatorAny },
			want:   only("spec.successPolicy.operator", invalid, `was "All"; `+immutable),
		},
		"3.5-6 failurePolicy changes": {
			stored: full, change: func(js *jobset.JobSet) { js.Spec.FailurePolicy.MaxRestarts = 3 },
			want: only("spec.failurePolicy.maxRestarts", invalid, "was 0; "+immutable),
		},
		"3.5-6 startupPolicy changes": {
			change: func(js *jobset.JobSet) { js.Spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder },
			want:   only("spec.startupPolicy.startupPolicyOrder", invalid, `was "AnyOrder"; `+immutable),
		},
		"3.5-6 volumeClaimPolicies change": {
			stored: full, change: func(js *jobset.JobSet) {
				js.Spec.VolumeClaimPolicies[0].Templates[0].Labels = map[string]string{"a": "b"}
			},
			want: only("spec.volumeClaimPolicies[0].templates[0].metadata.labels[a]", invalid, "was not set; "+immutable),
		},
		"3.5-6 volumeClaimPolicies are emptied": {
			stored: full, change: func(js *jobset.JobSet) { js.Spec.VolumeClaimPolicies = []jobset.VolumeClaimPolicy{} },
			want: only("spec.volumeClaimPolicies", invalid, "had 1 item, now 0; "+immutable),
		},
		"3.5-6 dependsOn changes": {
			stored: full, change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].DependsOn[0].Status = jobset.DependencyComplete },
			want: only("spec.replicatedJobs[1].dependsOn[0].status", invalid, `was "Ready"; `+immutable),
		},
		"3.5-6 sections may be removed, except successPolicy": {
			stored: full, change: func(js *jobset.JobSet) {
				js.Spec.Network, js.Spec.FailurePolicy, js.Spec.StartupPolicy, js.Spec.VolumeClaimPolicies = nil, nil, nil, nil
			},
		},
		"3.5-6 sections may be added": {
			stored: func(js *jobset.JobSet) { withClaims("data")(js); bare(js) },
			change: func(js *jobset.JobSet) {
				filled := train(full)
				filled.Spec.ReplicatedJobs = js.Spec.ReplicatedJobs
				js.Spec = filled.Spec
			},
		},
		"own successPolicy is removed": {
			change: func(js *jobset.JobSet) { js.Spec.SuccessPolicy = nil },
			want:   only("spec.successPolicy", forbidden, "cannot be removed: send the stored value, which has the operator All"),
		},
		"own an added failurePolicy must be valid": {
			change: withRules(jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet, OnJobFailureMessagePatterns: []string{"("}}),
			want: only("spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]", invalid,
				"must be an RE2 regular expression: missing closing ): `(`"),
		},
		"own added volumeClaimPolicies must be valid": {
			change: func(js *jobset.JobSet) {
				js.Spec.VolumeClaimPolicies = train(withClaims("data")).Spec.VolumeClaimPolicies
			},
			want: only("spec.replicatedJobs", invalid,
				`must have a container or init container that mounts "data", because volumeClaimPolicies has a claim template of that name: add a volumeMount, or remove the template`),
		},
		"own a changed coordinator must be valid": {
			change: func(js *jobset.JobSet) { js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "nobody"} },
			want:   only("spec.coordinator.replicatedJob", invalid, target),
		},
		"3.5-5 managedBy is set": {
			change: func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("acme.io/foo") },
			want:   only("spec.managedBy", invalid, "was not set; field is immutable: "+immutable),
		},
		"3.5-5 managedBy is removed": {
			stored: func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("acme.io/foo") },
			change: func(js *jobset.JobSet) { js.Spec.ManagedBy = nil },
			want:   only("spec.managedBy", invalid, `was "acme.io/foo", now is not; field is immutable: `+immutable),
		},
		"3.5-5 managedBy changes": {
			stored: func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("acme.io/foo") },
			change: func(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("acme.io/bar") },
			want:   only("spec.managedBy", invalid, `was "acme.io/foo"; field is immutable: `+immutable),
		},
	})
}

func deadline(seconds *int64) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) { js.Spec.ActiveDeadlineSeconds = seconds }
}

func TestActiveDeadlineUpdate(t *testing.T) {
	limited := func(condition string) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { deadline(ptr.To[int64](60))(js); finishedAs(condition)(js) }
	}
	runUpdates(t, map[string]updateCase{
		"8.4 a running set gets a deadline":        {change: deadline(ptr.To[int64](60))},
		"8.4 a running set gets another deadline":  {stored: deadline(ptr.To[int64](60)), change: deadline(ptr.To[int64](1))},
		"8.4 a running set loses its deadline":     {stored: deadline(ptr.To[int64](60)), change: deadline(nil)},
		"8.4 a finished set keeps its deadline":    {stored: limited("Failed"), change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }},
		"8.4 a stored bad deadline may stay":       {stored: deadline(ptr.To[int64](0)), change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }},
		"8.4 a deadline below one second comes in": {change: deadline(ptr.To[int64](0)), want: only("spec.activeDeadlineSeconds", invalid, "must be 1 or more; leave it out for no limit")},
		"8.4 a Completed set gets a deadline": {
			stored: finishedAs("Completed"), change: deadline(ptr.To[int64](60)),
			want: only("spec.activeDeadlineSeconds", forbidden, late),
		},
		"8.4 a Failed set gets another deadline": {
			stored: limited("Failed"), change: deadline(ptr.To[int64](600)),
			want: only("spec.activeDeadlineSeconds", forbidden, late),
		},
		"8.4 a Failed set loses its deadline": {
			stored: limited("Failed"), change: deadline(nil),
			want: only("spec.activeDeadlineSeconds", forbidden, late),
		},
	})
}

// A stored object may have errors of rules that came later. It stays updatable, as long as nothing gets worse.
func TestRatchet(t *testing.T) {
	bad := withRules(jobset.FailurePolicyRule{Name: "r", Action: jobset.RestartJob, OnJobFailureMessagePatterns: []string{"("}})
	runUpdates(t, map[string]updateCase{
		"ratchet a set with a pattern that does not compile is suspended": {
			stored: bad, change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }, opts: gates.Gates{RestartJob: true},
		},
		"ratchet a set with a gated action outlives its gate": {
			stored: bad, change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) },
		},
		"ratchet a set that depends on itself gets a time to live": {
			stored: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "workers", Status: jobset.DependencyReady}}
			},
			change: func(js *jobset.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](5) },
		},
		"ratchet a set without successPolicy stays without": {
			stored: func(js *jobset.JobSet) { js.Spec.SuccessPolicy = nil },
			change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) },
		},
		"ratchet a bad coordinator may stay, not become another bad one": {
			stored: func(js *jobset.JobSet) { js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "nobody"} },
			change: func(js *jobset.JobSet) { js.Spec.Coordinator.ReplicatedJob = "noone" },
			want:   only("spec.coordinator.replicatedJob", invalid, target),
		},
		"ratchet a set with two replicatedJobs of one name is suspended": {
			stored: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[0].Name = "workers"; setGates("a")(js) },
			change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) },
		},
		"ratchet a doubled scheduling gate may move in its list": {
			stored: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true); setGates("a", "b", "b")(js) },
			change: setGates("b", "b"),
		},
		"ratchet a doubled scheduling gate must not be tripled": {
			stored: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true); setGates("b", "b")(js) },
			change: setGates("b", "b", "b"),
			want:   only("spec.replicatedJobs[1].template.spec.template.spec.schedulingGates[2]", duplicate, unique),
		},
	})
}
