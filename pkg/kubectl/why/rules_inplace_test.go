// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// ruled gives the first container of a pod a restart rule.
func ruled(spec *corev1.PodSpec, action corev1.ContainerRestartRuleAction) {
	if len(spec.Containers) == 0 {
		spec.Containers = []corev1.Container{{Name: "main"}}
	}
	spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: action}}
}

func inPlaceCases() map[string]diagnosisCase {
	const old = "0/3 nodes are available: 3 node(s) didn't match Pod's required features. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	rules := func(s *jobsetv1alpha2.JobSetSpec) {
		ruled(&s.ReplicatedJobs[0].Template.Spec.Template.Spec, corev1.ContainerRestartRuleActionRestart)
	}
	jobsToo := func(e *Evidence) {
		for _, job := range e.Jobs {
			ruled(&job.Spec.Template.Spec, corev1.ContainerRestartRuleActionRestart)
		}
	}
	inPlace := func(s *jobsetv1alpha2.JobSetSpec) {
		s.FailurePolicy = &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart, MaxRestarts: 2}
	}
	failed := func(e *Evidence) {
		has(jobsetv1alpha2.JobSetFailed, "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")(e)
	}
	return map[string]diagnosisCase{
		"no kubelet can restart all containers": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				noNode(old)(pod)
				ruled(&pod.Spec, corev1.ContainerRestartRuleActionRestartAllContainers)
			})),
			want: RestartRulesMissing, words: []string{"2 pods find no node", "kubelet must be 1.36 or newer"},
		},
		"no kubelet has another feature": {
			evidence: healthy(pods(noNode(old))), want: Unschedulable, words: []string{"required features"},
		},
		"kube-apiserver has dropped the rules": {
			evidence: healthy(spec(rules)), want: RestartRulesMissing, words: []string{"dropped the restart rules of container", "ContainerRestartRules"}, further: []Cause{Running},
		},
		"the rules are there":                 {evidence: healthy(spec(rules), jobsToo), want: Running},
		"restarts in place reach their limit": {evidence: healthy(spec(inPlace), failed), want: MaxRestartsReached, words: []string{"2 restarts, in place or of Jobs"}},
	}
}
