// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// podRequests and podLimits return what a pod asks for as a whole, as quotas count it: init containers run one after the
// other before the containers, sidecars beside all that come after them.
func podRequests(pod *corev1.PodSpec) corev1.ResourceList {
	list := total(pod, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
	add(list, pod.Overhead)
	return list
}

func podLimits(pod *corev1.PodSpec) corev1.ResourceList {
	list := total(pod, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
	for name, quantity := range pod.Overhead {
		if _, limited := list[name]; limited {
			add(list, corev1.ResourceList{name: quantity})
		}
	}
	return list
}

func total(pod *corev1.PodSpec, of func(*corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Containers {
		add(sum, of(&pod.Containers[i].Resources))
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(sidecars, of(&c.Resources))
			raise(peak, sidecars)
			continue
		}
		now := sidecars.DeepCopy()
		add(now, of(&c.Resources))
		raise(peak, now)
	}
	add(sum, sidecars)
	raise(sum, peak)
	if pod.Resources != nil {
		// What the pod says for itself holds in place of what its containers say.
		for name, quantity := range of(pod.Resources) {
			sum[name] = quantity.DeepCopy()
		}
	}
	return sum
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

func raise(list, to corev1.ResourceList) {
	for name, quantity := range to {
		if current, found := list[name]; !found || current.Cmp(quantity) < 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}

// times returns a quantity n times.
func times(quantity resource.Quantity, n int) resource.Quantity {
	product := quantity.DeepCopy()
	product.Mul(int64(n))
	return product
}
