// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan has what the kinds whose pods are gangs know alike of the schedulers of gangs.
package plan

import "k8s.io/apimachinery/pkg/runtime/schema"

// Provider is a scheduler of gangs.
type Provider string

const (
	// Volcano is the scheduler of that name.
	Volcano Provider = "volcano"
	// Coscheduling is the plugin of that name of the scheduler plugins that the community maintains.
	Coscheduling Provider = "coscheduling"
	// Kubernetes is the scheduler of the cluster, from Kubernetes 1.37 on.
	Kubernetes Provider = "kubernetes"
	// KubernetesAlpha is the scheduler of the cluster in Kubernetes 1.36.
	KubernetesAlpha Provider = "kubernetes-v1alpha2"
)

// OwnKind reports whether a scheduler has a PodGroup of its own, which says how many pods are the least to be scheduled
// together and what they request, and no Workload. All other schedulers use the groups of Kubernetes.
func (p Provider) OwnKind() bool { return p == Volcano || p == Coscheduling }

// Resource returns the resource of the PodGroups of a scheduler of gangs.
func (p Provider) Resource() schema.GroupVersionResource {
	switch p {
	case Volcano:
		return schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	case Coscheduling:
		return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	case KubernetesAlpha:
		return schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha2", Resource: "podgroups"}
	}
	return schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
}
