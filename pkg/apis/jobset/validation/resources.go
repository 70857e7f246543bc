// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

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

// containerDifference names what differs first between two lists of containers, and whether it is a resource that
// may change while the set is suspended, if the feature is on.
func containerDifference(next, prev []corev1.Container) (where string, resources bool) {
	if len(next) != len(prev) {
		return "", false
	}
	for i := range next {
		if equality.Semantic.DeepEqual(next[i], prev[i]) {
			continue
		}
		name := differingField(next[i], prev[i])
		if name != "resources" {
			return fmt.Sprintf("[%d].%s", i, name), false
		}
		resource := differingField(next[i].Resources, prev[i].Resources)
		return fmt.Sprintf("[%d].%s.%s", i, name, resource), resource == "requests" || resource == "limits"
	}
	return "", false
}
