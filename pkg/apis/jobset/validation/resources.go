// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// resetResources resets the requests and limits of containers that both templates have.
func resetResources(rj, was *jobset.ReplicatedJob) {
	pod, old := &rj.Template.Spec.Template.Spec, &was.Template.Spec.Template.Spec
	resetContainerResources(pod.InitContainers, old.InitContainers)
	resetContainerResources(pod.Containers, old.Containers)
}

// resetContainerResources looks for each container at its old index only: the order of containers may not change, and names
// need not be unique in an object that was stored under other rules.
func resetContainerResources(next, prev []corev1.Container) {
	for i := range min(len(next), len(prev)) {
		if next[i].Name == prev[i].Name {
			next[i].Resources.Requests, next[i].Resources.Limits = prev[i].Resources.Requests, prev[i].Resources.Limits
		}
	}
}
