// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	immutableJobs = "spec.replicatedJobs"
	immutable     = "cannot be changed after creation"
)

// whileRunning and whileSuspended say whether an update of a set in that state is accepted.
type updateCase struct {
	change         func(*corev1.PodTemplateSpec)
	whileRunning   bool
	whileSuspended bool
}

func (tc updateCase) run(t *testing.T) {
	for state, accepted := range map[string]bool{"running": tc.whileRunning, "suspended": tc.whileSuspended} {
		t.Run(state, func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(func(js *jobSet) { js.Spec.Suspend = ptr.To(state == "suspended") }))
			err := e.tryUpdate(template(func(spec *batchv1.JobSpec) { tc.change(&spec.Template) }))
			if !accepted {
				e.refused(err, immutableJobs, "field is immutable")
			} else if err != nil {
				t.Errorf("the update is refused: %v", err)
			}
		})
	}
}

func TestRow7_2_06_NodeSelector(t *testing.T) {
	updateCase{
		change:         func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector = map[string]string{"pool": "fast"} },
		whileSuspended: true,
	}.run(t)
}

func TestRow7_2_07_HostnameAndSubdomain(t *testing.T) {
	t.Run("hostname", updateCase{change: func(pod *corev1.PodTemplateSpec) { pod.Spec.Hostname = "h" }}.run)
	t.Run("subdomain", updateCase{change: func(pod *corev1.PodTemplateSpec) { pod.Spec.Subdomain = "s" }}.run)
}

func TestRow7_2_08_AnnotationsAndSchedulingGates(t *testing.T) {
	t.Run("annotations", updateCase{
		change:         func(pod *corev1.PodTemplateSpec) { pod.Annotations = map[string]string{"example.com/a": "b"} },
		whileSuspended: true,
	}.run)
	t.Run("scheduling gates", updateCase{
		change: func(pod *corev1.PodTemplateSpec) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		},
		whileSuspended: true,
	}.run)
}

func TestRow7_2_09_SuspendAndResume(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.update(suspend)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "True SuspendedJobs")
	e.update(resume)
	e.awaitCondition(jobsetv1alpha2.JobSetSuspended, "False ResumeJobs")
}

func TestRow7_2_10_ImmutableFields(t *testing.T) {
	for name, tc := range map[string]struct {
		before []func(*jobSet)
		change func(*jobSet)
		field  string
	}{
		"success policy": {nil, successPolicy(jobsetv1alpha2.OperatorAny), "spec.successPolicy"},
		"failure policy": {
			[]func(*jobSet){failurePolicy(1)}, func(js *jobSet) { js.Spec.FailurePolicy.MaxRestarts = 2 }, "spec.failurePolicy"},
		"managedBy, set on a running set": {
			nil, managedBy("example.com/other"), "spec.managedBy"},
		"managedBy, set on a suspended set": {
			[]func(*jobSet){suspend}, managedBy("example.com/other"), "spec.managedBy"},
		"managedBy, changed": {
			[]func(*jobSet){managedBy("example.com/one")}, managedBy("example.com/other"), "spec.managedBy"},
		"dependsOn": {
			[]func(*jobSet){dependsOn(1, on(groupA, jobsetv1alpha2.DependencyReady))},
			dependsOn(1, on(groupA, jobsetv1alpha2.DependencyComplete)), "spec.replicatedJobs[1].dependsOn"},
		"volume claim policies": {
			[]func(*jobSet){claim("one", jobsetv1alpha2.RetentionPolicyDelete)},
			func(js *jobSet) {
				js.Spec.VolumeClaimPolicies[0].RetentionPolicy.WhenDeleted = ptr.To(jobsetv1alpha2.RetentionPolicyRetain)
			}, "spec.volumeClaimPolicies"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(tc.before...))
			e.refused(e.tryUpdate(tc.change), tc.field, immutable)
		})
	}
}

func managedBy(value string) func(*jobSet) {
	return func(js *jobSet) { js.Spec.ManagedBy = ptr.To(value) }
}

func dependsOn(index int, items ...jobsetv1alpha2.DependsOn) func(*jobSet) {
	return func(js *jobSet) { js.Spec.ReplicatedJobs[index].DependsOn = items }
}

func TestRow7_2_18_ElasticSizeWithTheGate(t *testing.T) {
	nonIndexed := func(js *jobSet) {
		for i := range js.Spec.ReplicatedJobs {
			js.Spec.ReplicatedJobs[i].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
		}
	}
	const spec = "spec.replicatedJobs[0].template.spec."
	for name, tc := range map[string]struct {
		before                   func(*jobSet)
		parallelism, completions int32
		field, text              string // of the refusal, if there is one
	}{
		"4/4 is accepted":           {func(*jobSet) {}, 4, 4, "", ""},
		"4/5 is refused":            {func(*jobSet) {}, 4, 5, spec + "completions", "completions must be equal to parallelism"},
		"0/0 is refused":            {func(*jobSet) {}, 0, 0, spec + "parallelism", "parallelism must be >= 1"},
		"4/4 NonIndexed is refused": {nonIndexed, 4, 4, immutableJobs, "field is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, gated)
			e.create(testJobSet(func(js *jobSet) { resize(js, 2, 2) }, tc.before))
			err := e.tryUpdate(func(js *jobSet) { resize(js, tc.parallelism, tc.completions) })
			if tc.field != "" {
				e.refused(err, tc.field, tc.text)
			} else if err != nil {
				t.Errorf("the update is refused: %v", err)
			}
		})
	}
}

func TestRow7_2_19_ElasticSizeWithoutTheGate(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(func(js *jobSet) { resize(js, 2, 2) }))
	e.refused(e.tryUpdate(func(js *jobSet) { resize(js, 4, 4) }), immutableJobs, "field is immutable")
}
