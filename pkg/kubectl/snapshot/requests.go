// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
)

// PodRequests is what the scheduler sets aside for a pod: what its containers request together, or what one of its init
// containers requests if that is more, and the overhead. Requests of the pod as a whole take the place of those of its
// containers.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	together := corev1.ResourceList{}
	for i := range spec.Containers {
		AddResources(together, spec.Containers[i].Resources.Requests)
	}
	// Sidecars run beside the containers, and beside the init containers that come after them.
	sidecars, first := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			AddResources(sidecars, c.Resources.Requests)
			raise(first, sidecars)
			continue
		}
		alone := sidecars.DeepCopy()
		AddResources(alone, c.Resources.Requests)
		raise(first, alone)
	}
	AddResources(together, sidecars)
	raise(together, first)
	if spec.Resources != nil {
		for name, quantity := range spec.Resources.Requests {
			together[name] = quantity.DeepCopy()
		}
	}
	AddResources(together, spec.Overhead)
	return together
}

// AddResources adds resources to a sum.
func AddResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total, found := sum[name]
		if !found {
			sum[name] = quantity.DeepCopy()
			continue
		}
		total.Add(quantity)
		sum[name] = total
	}
}

func raise(list, to corev1.ResourceList) {
	for name, quantity := range to {
		if present, found := list[name]; !found || present.Cmp(quantity) < 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
