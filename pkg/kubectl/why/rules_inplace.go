// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// What clusters lack that do not know the restart rules of containers.

// containersOf returns all containers of a pod, those of the initialization first.
func containersOf(spec *corev1.PodSpec) []corev1.Container {
	return slices.Concat(spec.InitContainers, spec.Containers)
}

// restartsAllContainers reports whether a rule restarts all containers of the pod, which kubelets declare that they can.
func restartsAllContainers(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(containersOf(spec), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// oldNodes explains that no kubelet can restart all containers of a pod.
func oldNodes(f *Finding, n int) {
	f.Summary = fmt.Sprintf("%s no node that can restart all containers of a pod in place: kubelet must be 1.36 or newer, with the feature "+
		"gate RestartAllContainersOnContainerExits",
		podsDo(n, "finds", "find"))
	f.Commands = append(f.Commands, "kubectl get nodes -o custom-columns="+
		"NAME:.metadata.name,KUBELET:.status.nodeInfo.kubeletVersion,FEATURES:.status.declaredFeatures")
}

// restartRulesDropped looks for rules of the set that its Jobs do not have: an API server that does not know them leaves them out.
func restartRulesDropped(d *diagnosis) []Finding {
	for i := range d.JobSet.Spec.ReplicatedJobs {
		rj := &d.JobSet.Spec.ReplicatedJobs[i]
		wanted := withRules(&rj.Template.Spec.Template.Spec)
		if len(wanted) == 0 {
			continue
		}
		for _, job := range d.current {
			if job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] != rj.Name {
				continue
			}
			have := withRules(&job.Spec.Template.Spec)
			missing := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(have, name) })
			if len(missing) == 0 {
				break // an API server treats all Jobs alike
			}
			return []Finding{{
				Cause: RestartRulesMissing,
				Summary: fmt.Sprintf("kube-apiserver has dropped the restart rules of container %s, so that failed pods are recreated: its feature "+
					"gate ContainerRestartRules is off, or it is older than 1.35",
					some(missing, maxFacts)),
				Evidence: []Fact{{Object: object("job", job.Name), Text: "has no restartPolicyRules where the set has them"}},
				Commands: []string{"kubectl version", d.kubectl("get job %s -o yaml", job.Name)},
			}}
		}
	}
	return nil
}

// withRules returns the names of the containers that have restart rules.
func withRules(spec *corev1.PodSpec) (names []string) {
	for _, c := range containersOf(spec) {
		if len(c.RestartPolicyRules) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}
