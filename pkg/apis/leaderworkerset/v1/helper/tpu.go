// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import corev1 "k8s.io/api/core/v1"

// tpuResource is the name of the resource.
const tpuResource = corev1.ResourceName("google.com/tpu")

// TPUContainers returns the containers that request TPUs, init containers last.
func TPUContainers(spec *corev1.PodSpec) []*corev1.Container {
	var found []*corev1.Container
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if requestsTPUs(&containers[i].Resources) {
				found = append(found, &containers[i])
			}
		}
	}
	return found
}

// RequestsTPUs returns whether a container of the pod requests TPUs.
func RequestsTPUs(spec *corev1.PodSpec) bool { return len(TPUContainers(spec)) > 0 }

// requestsTPUs looks at requests only where there is no limit.
func requestsTPUs(resources *corev1.ResourceRequirements) bool {
	if limit, found := resources.Limits[tpuResource]; found {
		return !limit.IsZero()
	}
	request := resources.Requests[tpuResource]
	return !request.IsZero()
}
