// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// PodRequests returns what the scheduler sets aside for a pod.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	return resource.PodRequests(&corev1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
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
