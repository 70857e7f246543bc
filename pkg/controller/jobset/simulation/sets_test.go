// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ns"
	setName   = "js"
	// claimTemplate is the name of the claim template and of the volume that mounts it.
	claimTemplate = "data"
	// directive is the key of the label, the annotation and the node selector that users change.
	directive = "flavor"
)

// Reasons and messages of failures, which rules tell apart.
var (
	failureReasons  = []string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonPodFailurePolicy, batchv1.JobReasonDeadlineExceeded}
	failureMessages = []string{"", "pod failed with exit code 137", "node was lost"}
)

// randomSet returns a set that the API would store, in all shapes that decisions distinguish.
func randomSet(d simulation.Dice) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace}}
	for i := range 1 + d.IntN(3) {
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, randomReplicatedJob(d, string(rune('a'+i))))
	}
	randomOrder(d, js)
	js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	if d.Percent(35) {
		js.Spec.SuccessPolicy.Operator = simulation.OneOf(d, jobsetv1alpha2.OperatorAll, jobsetv1alpha2.OperatorAny)
		js.Spec.SuccessPolicy.TargetReplicatedJobs = some(d, replicatedJobNames(js)...)
	}
	if d.Percent(75) {
		js.Spec.FailurePolicy = randomFailurePolicy(d, js)
	}
	if d.Percent(80) {
		js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(d.Percent(70)), PublishNotReadyAddresses: ptr.To(true)}
	}
	if d.Percent(30) {
		js.Spec.Suspend = ptr.To(true)
	}
	if d.Percent(30) {
		js.Spec.TTLSecondsAfterFinished = ptr.To(simulation.OneOf[int32](d, 0, 1, 30))
	}
	if d.Percent(20) {
		js.Spec.ActiveDeadlineSeconds = ptr.To(simulation.OneOf[int64](d, 3, 30, 100))
	}
	if d.Percent(10) {
		js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "a"}
	}
	if d.Percent(10) {
		js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "zone", jobsetv1alpha2.NodeSelectorStrategyKey: "true"}
	}
	if d.Percent(15) {
		addClaims(d, js)
	}
	if d.Percent(2) {
		js.Spec.ManagedBy = ptr.To("example.com/another-controller")
	}
	return js
}

func randomReplicatedJob(d simulation.Dice, name string) jobsetv1alpha2.ReplicatedJob {
	replicas := simulation.OneOf[int32](d, 1, 1, 1, 1, 1, 2, 2, 2, 3)
	if d.Percent(4) {
		replicas = 0
	}
	rj := jobsetv1alpha2.ReplicatedJob{Name: name, Replicas: ptr.To(replicas), GroupName: ptr.To("default")}
	spec := &rj.Template.Spec
	spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	spec.Parallelism = simulation.OneOf[*int32](d, nil, ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](2))
	spec.Completions = spec.Parallelism
	if d.Percent(5) {
		spec.Parallelism, spec.Completions = ptr.To[int32](0), nil
	}
	spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	setDirectives(&rj, "first")
	return rj
}

// setDirectives gives the pods of a replicatedJob other scheduling directives, as a queueing system does.
func setDirectives(rj *jobsetv1alpha2.ReplicatedJob, value string) {
	template := &rj.Template.Spec.Template
	template.Labels = map[string]string{directive: value}
	template.Annotations = map[string]string{directive: value}
	template.Spec.NodeSelector = map[string]string{directive: value}
	template.Spec.Tolerations = []corev1.Toleration{{Key: directive, Operator: corev1.TolerationOpEqual, Value: value}}
}

// setResources lets the containers of a replicatedJob ask for something else.
func setResources(rj *jobsetv1alpha2.ReplicatedJob, cpus int) {
	containers := slices.Clone(rj.Template.Spec.Template.Spec.Containers)
	containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}
	rj.Template.Spec.Template.Spec.Containers = containers
}

// randomOrder chooses at most one of the two ways to order the start.
func randomOrder(d simulation.Dice, js *jobsetv1alpha2.JobSet) {
	js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.AnyOrder}
	switch {
	case d.Percent(30):
		js.Spec.StartupPolicy.StartupPolicyOrder = jobsetv1alpha2.InOrder
	case d.Percent(40):
		for i := range js.Spec.ReplicatedJobs {
			for _, earlier := range js.Spec.ReplicatedJobs[:i] {
				if d.Percent(60) {
					status := simulation.OneOf(d, jobsetv1alpha2.DependencyReady, jobsetv1alpha2.DependencyComplete)
					rj := &js.Spec.ReplicatedJobs[i]
					rj.DependsOn = append(rj.DependsOn, jobsetv1alpha2.DependsOn{Name: earlier.Name, Status: status})
				}
			}
		}
	}
}

func randomFailurePolicy(d simulation.Dice, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.FailurePolicy {
	policy := &jobsetv1alpha2.FailurePolicy{
		MaxRestarts:     simulation.OneOf[int32](d, 0, 1, 2, 3, 3),
		RestartStrategy: simulation.OneOf(d, jobsetv1alpha2.RestartStrategyRecreate, jobsetv1alpha2.RestartStrategyBlockingRecreate),
	}
	for i := range d.IntN(3) {
		rule := jobsetv1alpha2.FailurePolicyRule{
			Name: string(rune('r' + i)),
			Action: simulation.OneOf(d, jobsetv1alpha2.FailJobSet, jobsetv1alpha2.RestartJobSet, jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts,
				jobsetv1alpha2.RestartJob, jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts),
		}
		if d.Percent(40) {
			rule.OnJobFailureReasons = some(d, failureReasons...)
		}
		if d.Percent(20) {
			rule.OnJobFailureMessagePatterns = []string{simulation.OneOf(d, "exit code 1[0-9]+", "^node", "*")}
		}
		if d.Percent(40) {
			rule.TargetReplicatedJobs = some(d, replicatedJobNames(js)...)
		}
		policy.Rules = append(policy.Rules, rule)
	}
	return policy
}

// some returns a random part of the options, none of them included.
func some(d simulation.Dice, options ...string) []string {
	var chosen []string
	for _, option := range options {
		if d.Percent(40) {
			chosen = append(chosen, option)
		}
	}
	return chosen
}

func addClaims(d simulation.Dice, js *jobsetv1alpha2.JobSet) {
	whenDeleted := simulation.OneOf(d, jobsetv1alpha2.RetentionPolicyDelete, jobsetv1alpha2.RetentionPolicyRetain)
	js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates:       []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: claimTemplate}}},
		RetentionPolicy: &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: &whenDeleted},
	}}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: claimTemplate}}
}

func replicatedJobNames(js *jobsetv1alpha2.JobSet) []string {
	var names []string
	for i := range js.Spec.ReplicatedJobs {
		names = append(names, js.Spec.ReplicatedJobs[i].Name)
	}
	return names
}
