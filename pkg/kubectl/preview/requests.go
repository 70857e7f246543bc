// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// podLimits returns the limits of a pod as a whole.
func podLimits(spec *corev1.PodSpec) corev1.ResourceList {
	return helpers.PodLimits(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
}

// bestEffort returns whether no container asks for anything.
func bestEffort(spec *corev1.PodSpec) bool {
	pod, options := &corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{ExcludeOverhead: true}
	return len(helpers.PodRequests(pod, options)) == 0 && len(helpers.PodLimits(pod, options)) == 0
}

// times returns a quantity n times.
func times(quantity resource.Quantity, n int) resource.Quantity {
	product := quantity.DeepCopy()
	product.Mul(int64(n))
	return product
}
