// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func tooManyItems(limit int) string { return fmt.Sprintf("must have at most %d items", limit) }

// manyJobs has so many replicatedJobs in all, with names that are distinct.
func manyJobs(count int) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		for i := len(js.Spec.ReplicatedJobs); i < count; i++ {
			builders.WithHubJobs(fmt.Sprintf("w%d", i), 1, 1)(js)
		}
	}
}

func withReplicas(replicas ...int32) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		for i, n := range replicas {
			js.Spec.ReplicatedJobs[i].Replicas = ptr.To(n)
		}
	}
}

// withEnv adds a number of objects: variables, and the containers that they need.
func withEnv(count int) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		pod := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
		pod.Containers[0].Env = variables(min(count, generic.MaxItems))
		for count -= len(pod.Containers[0].Env); count > 0; {
			c := pod.Containers[0]
			c.Name, c.Env = fmt.Sprintf("c%d", len(pod.Containers)), variables(min(count-1, generic.MaxItems))
			pod.Containers = append(pod.Containers, c)
			count -= len(c.Env) + 1
		}
	}
}

func variables(count int) []corev1.EnvVar {
	env := make([]corev1.EnvVar, count)
	for i := range env {
		env[i].Name = fmt.Sprintf("E%d", i)
	}
	return env
}

func withPatterns(patterns ...string) func(*jobset.JobSet) {
	return withRules(jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet, OnJobFailureMessagePatterns: patterns})
}

// Lists that are too long are the only errors, however many the items have.
func TestListBounds(t *testing.T) {
	rule := jobset.FailurePolicyRule{Name: "r", Action: jobset.FailJobSet}
	targets := make([]string, validation.MaxTargets+1)
	runRules(t, map[string]ruleCase{
		"replicatedJobs, none of them valid": {
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs = make([]jobset.ReplicatedJob, validation.MaxReplicatedJobs+1)
			},
			want: only("spec.replicatedJobs", tooMany, tooManyItems(1000)),
		},
		"as many replicatedJobs as may be": {change: manyJobs(validation.MaxReplicatedJobs)},
		"rules, none of them valid": {
			change: withRules(make([]jobset.FailurePolicyRule, validation.MaxRules+1)...),
			want:   only("spec.failurePolicy.rules", tooMany, tooManyItems(1000)),
		},
		"targets of a rule": {
			change: withRules(jobset.FailurePolicyRule{Name: "r", TargetReplicatedJobs: targets}),
			want:   only("spec.failurePolicy.rules[0].targetReplicatedJobs", tooMany, tooManyItems(1000)),
		},
		"reasons of a rule": {
			change: withRules(rule, jobset.FailurePolicyRule{OnJobFailureReasons: make([]string, validation.MaxReasons+1)}),
			want:   only("spec.failurePolicy.rules[1].onJobFailureReasons", tooMany, tooManyItems(100)),
		},
		"targets of the success policy": {
			change: func(js *jobset.JobSet) { js.Spec.SuccessPolicy.TargetReplicatedJobs = targets },
			want:   only("spec.successPolicy.targetReplicatedJobs", tooMany, tooManyItems(1000)),
		},
		"dependencies": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].DependsOn = make([]jobset.DependsOn, 6) },
			want:   only("spec.replicatedJobs[1].dependsOn", tooMany, tooManyItems(5)),
		},
		"policies of claims": {
			change: func(js *jobset.JobSet) { js.Spec.VolumeClaimPolicies = make([]jobset.VolumeClaimPolicy, 51) },
			want:   only("spec.volumeClaimPolicies", tooMany, tooManyItems(50)),
		},
		"templates of claims, with as many volumes of their name": {
			change: func(js *jobset.JobSet) {
				withClaims(strings.Split(strings.Repeat("x", 1000), "")...)(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes = make([]corev1.Volume, 2000)
			},
			want: only("spec.volumeClaimPolicies[0].templates", tooMany, tooManyItems(50)),
		},
		"objects in lists of templates": {
			change: withEnv(validation.MaxObjects),
			want: only("spec", invalid,
				"must have at most 20000 objects in all of its lists together, such as containers, variables and volumes; it has 20004"),
		},
		"as many objects as may be": {change: withEnv(validation.MaxObjects - 4)},
		"variables of a container": {
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Env = variables(generic.MaxItems + 1)
			},
			want: only("spec.replicatedJobs[1].template.spec.template.spec.containers[0].env", tooMany, tooManyItems(2000)),
		},
		"files of a volume": {
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{Items: make([]corev1.KeyToPath, generic.MaxItems+1)},
				}}}
			},
			want: only("spec.replicatedJobs[0].template.spec.template.spec.volumes[0].configMap.items", tooMany, tooManyItems(2000)),
		},
		"a list has one error only": {
			change: func(js *jobset.JobSet) {
				js.Spec.VolumeClaimPolicies = make([]jobset.VolumeClaimPolicy, generic.MaxItems+1)
			},
			want: only("spec.volumeClaimPolicies", tooMany, tooManyItems(50)),
		},
	})
}

func TestSumBounds(t *testing.T) {
	jobs := func(n int64) string {
		return fmt.Sprintf("must not result in more than 100000 Jobs: the replicas of all replicatedJobs add up to %d", n)
	}
	pods := func(n int64) string {
		return fmt.Sprintf("must not result in more than 2000000 pods: replicas times parallelism of all replicatedJobs add up to %d", n)
	}
	runRules(t, map[string]ruleCase{
		"Jobs that overflow 32 bits": {
			change: func(js *jobset.JobSet) {
				withReplicas(1<<31-1, 1<<31-1)(js)
				js.Spec.ReplicatedJobs[1].Template.Spec.Parallelism = nil
			},
			want: []refusal{{"spec.replicatedJobs", invalid, jobs(1<<32 - 2)}, {"spec.replicatedJobs", invalid, pods(1<<32 - 2)}},
		},
		"a Job too many":          {change: withReplicas(1, 100_000), want: only("spec.replicatedJobs", invalid, jobs(100_001))},
		"as many Jobs as may be":  {change: withReplicas(1, 99_999)},
		"a pod too many":          {change: func(js *jobset.JobSet) { withReplicas(1, 50_000)(js); resize(ptr.To[int32](40), ptr.To[int32](40))(js) }, want: only("spec.replicatedJobs", invalid, pods(2_000_001))},
		"as many pods as may be":  {change: func(js *jobset.JobSet) { withReplicas(0, 50_000)(js); resize(ptr.To[int32](40), ptr.To[int32](40))(js) }},
		"Jobs that start no pods": {change: func(js *jobset.JobSet) { withReplicas(1, 90_000)(js); resize(ptr.To[int32](0), ptr.To[int32](0))(js) }},
	})
}

func TestPatternBounds(t *testing.T) {
	path := func(i int) string {
		return fmt.Sprintf("spec.failurePolicy.rules[0].onJobFailureMessagePatterns[%d]", i)
	}
	states := func(left, n int) string {
		return fmt.Sprintf("must be simpler: all patterns of a policy together may have 20000 states, of which %d are left, and this one has about %d; repeat fewer or shorter parts", left, n)
	}
	runRules(t, map[string]ruleCase{
		"a pattern of 1025 bytes":    {change: withPatterns(strings.Repeat("a", 1025)), want: only(path(0), tooLong, "may not be more than 1024 bytes")},
		"a pattern of 1024 bytes":    {change: withPatterns(strings.Repeat("a", 1024))},
		"a pattern that is too dear": {change: withPatterns(strings.Repeat("x{1000}", 21)), want: only(path(0), invalid, states(20_000, 42_022))},
		"patterns that are too dear together": {
			change: withPatterns("x{1000}", ".{0,999}", strings.Repeat("y{1000}", 9)),
			want:   only(path(2), invalid, states(16_999, 18_010)),
		},
		"repeated repetitions": {change: withPatterns(`((\pL{10}){10}){10}`, `(a|b){1,1000}`, `(?:x{30}){30}`)},
		"64 patterns":          {change: withPatterns(strings.Split(strings.Repeat("oom ", 63)+"oom", " ")...)},
		"65 patterns in two rules": {
			change: withRules(
				jobset.FailurePolicyRule{OnJobFailureMessagePatterns: make([]string, 33)},
				jobset.FailurePolicyRule{OnJobFailureMessagePatterns: make([]string, 32)}),
			want: only("spec.failurePolicy.rules", invalid, "must have at most 64 onJobFailureMessagePatterns in all rules together; it has 65"),
		},
	})
}

// What is stored over a bound stays updatable, and everything else about it is checked as ever.
func TestRatchetOfBounds(t *testing.T) {
	suspend := func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }
	badDeadline := func(js *jobset.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](0) }
	old := manyJobs(validation.MaxReplicatedJobs + 1)
	grow := func(js *jobset.JobSet) { resize(ptr.To[int32](50), ptr.To[int32](50))(js) }
	runUpdates(t, map[string]updateCase{
		"a long list is suspended": {stored: old, change: suspend},
		"a long list does not hide a new error": {
			stored: old, change: badDeadline,
			want: only("spec.activeDeadlineSeconds", invalid, "must be 1 or more; leave it out for no limit"),
		},
		"a long list does not grow": {
			stored: old, change: manyJobs(validation.MaxReplicatedJobs + 2),
			want: only("spec.replicatedJobs", tooMany, tooManyItems(1000)),
		},
		"a short list does not become long": {
			change: manyJobs(validation.MaxReplicatedJobs + 1),
			want:   only("spec.replicatedJobs", tooMany, tooManyItems(1000)),
		},
		"errors of a long list are tolerated one for one": {
			stored: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs = make([]jobset.ReplicatedJob, validation.MaxReplicatedJobs+1)
			},
			change: suspend,
		},
		"too many Jobs are suspended":  {stored: withReplicas(1<<31-1, 1), change: suspend},
		"too many pods stay elastic":   {stored: func(js *jobset.JobSet) { withReplicas(1, 50_000)(js); resize(ptr.To[int32](60), ptr.To[int32](60))(js) }, change: grow, opts: allGates},
		"few pods do not become many":  {stored: withReplicas(1, 50_000), change: grow, opts: allGates, want: only("spec.replicatedJobs", invalid, "must not result in more than 2000000 pods: replicas times parallelism of all replicatedJobs add up to 2500001")},
		"long patterns are suspended":  {stored: withPatterns(strings.Repeat("a", 30_000), strings.Repeat("x{1000}", 2000)), change: suspend},
		"many patterns are suspended":  {stored: withPatterns(make([]string, 100)...), change: suspend},
		"many objects are suspended":   {stored: withEnv(validation.MaxObjects + 5), change: suspend},
		"many claims stay as they are": {stored: func(js *jobset.JobSet) { js.Spec.VolumeClaimPolicies = make([]jobset.VolumeClaimPolicy, 60) }, change: suspend},
	})
}
