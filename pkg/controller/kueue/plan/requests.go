// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
)

// podRequests returns what a pod of a template asks for, as the scheduler counts it: init containers run one after another and before
// the containers, sidecars run beside those that follow them, and requests of the whole pod replace the sum.
func podRequests(spec *corev1.PodSpec) corev1.ResourceList {
	sidecars, peak, sum := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		needs := corev1.ResourceList{}
		addAll(needs, sidecars)
		addAll(needs, containerRequests(c.Resources))
		raise(peak, needs)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = needs
		}
	}
	addAll(sum, sidecars)
	for i := range spec.Containers {
		addAll(sum, containerRequests(spec.Containers[i].Resources))
	}
	raise(sum, peak)
	if spec.Resources != nil {
		for name, quantity := range containerRequests(*spec.Resources) {
			sum[name] = quantity.DeepCopy()
		}
	}
	addAll(sum, spec.Overhead)
	return sum
}

// containerRequests returns the requests of a container. A limit without a request is one.
func containerRequests(r corev1.ResourceRequirements) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for name, quantity := range r.Limits {
		requests[name] = quantity
	}
	for name, quantity := range r.Requests {
		requests[name] = quantity
	}
	return requests
}

func addAll(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// raise makes every quantity at least that of the other list.
func raise(most, other corev1.ResourceList) {
	for name, quantity := range other {
		if known, found := most[name]; !found || known.Cmp(quantity) < 0 {
			most[name] = quantity.DeepCopy()
		}
	}
}

// covers returns whether every quantity is at least that of the other list.
func covers(most, other corev1.ResourceList) bool {
	for name, quantity := range other {
		if known := most[name]; known.Cmp(quantity) < 0 {
			return false
		}
	}
	return true
}
