// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// podLimits returns the limits of a pod as a whole. They add up as requests do, but overhead counts only beside a limit.
func podLimits(spec *corev1.PodSpec) corev1.ResourceList {
	limits := spec.DeepCopy()
	limits.Overhead = nil
	for _, containers := range [][]corev1.Container{limits.InitContainers, limits.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = containers[i].Resources.Limits
		}
	}
	if limits.Resources != nil {
		limits.Resources.Requests = limits.Resources.Limits
	}
	sum := snapshot.PodRequests(limits)
	for name, quantity := range spec.Overhead {
		if _, limited := sum[name]; limited {
			snapshot.AddResources(sum, corev1.ResourceList{name: quantity})
		}
	}
	return sum
}

// bestEffort tells whether no container asks for anything.
func bestEffort(spec *corev1.PodSpec) bool {
	asked := spec.DeepCopy()
	asked.Overhead = nil
	return len(snapshot.PodRequests(asked)) == 0 && len(podLimits(asked)) == 0
}

// times returns a quantity n times.
func times(quantity resource.Quantity, n int) resource.Quantity {
	product := quantity.DeepCopy()
	product.Mul(int64(n))
	return product
}
