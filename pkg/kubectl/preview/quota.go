// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// usage is what a set counts towards quotas, when all of it runs.
type usage struct {
	// objects are all but pods, by the names of their quotas.
	objects corev1.ResourceList
	pods    []podUsage
}

// podUsage is a number of equal pods.
type podUsage struct {
	spec *corev1.PodSpec
	n    int
}

// usage returns what the set adds. It counts the pods of the answers, because the cluster has put its defaults in.
func (p *previewer) usage() usage {
	u := usage{objects: corev1.ResourceList{}}
	u.count(int64(1), "count/jobsets."+jobsetv1alpha2.GroupName)
	if p.out.Jobs > 0 {
		u.count(int64(p.out.Jobs), "count/jobs.batch")
	}
	for i, pod := range p.pods {
		if pod != nil && p.out.ReplicatedJobs[i].Pods > 0 {
			u.pods = append(u.pods, podUsage{&pod.Spec, p.out.ReplicatedJobs[i].Pods})
		}
	}
	if p.out.Service != nil && !p.out.Service.Exists {
		u.count(1, corev1.ResourceServices, "count/services")
	}
	for i, claim := range p.children.Claims {
		if !p.out.Claims[i].Exists {
			u.countClaim(&claim.Spec)
		}
	}
	return u
}

func (u *usage) count(n int64, names ...corev1.ResourceName) {
	for _, name := range names {
		snapshot.AddResources(u.objects, corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)})
	}
}

func (u *usage) countClaim(claim *corev1.PersistentVolumeClaimSpec) { u.countClaims(claim, 1) }

// countClaims counts a number of equal claims.
func (u *usage) countClaims(claim *corev1.PersistentVolumeClaimSpec, n int64) {
	u.count(n, corev1.ResourcePersistentVolumeClaims, "count/persistentvolumeclaims")
	storage := times(claim.Resources.Requests[corev1.ResourceStorage], int(n))
	snapshot.AddResources(u.objects, corev1.ResourceList{corev1.ResourceRequestsStorage: storage})
	if class := ptr.Deref(claim.StorageClassName, ""); class != "" {
		prefix := corev1.ResourceName(class + ".storageclass.storage.k8s.io/")
		u.count(n, prefix+corev1.ResourcePersistentVolumeClaims)
		snapshot.AddResources(u.objects, corev1.ResourceList{prefix + corev1.ResourceRequestsStorage: storage})
	}
}

// of returns what counts towards one quota.
func (u usage) of(quota *corev1.ResourceQuota) corev1.ResourceList {
	list := corev1.ResourceList{}
	if len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil {
		list = u.objects.DeepCopy()
	}
	for _, pods := range u.pods {
		if !inScope(quota, pods.spec) {
			continue
		}
		for name, quantity := range countedPod(pods.spec) {
			snapshot.AddResources(list, corev1.ResourceList{name: times(quantity, pods.n)})
		}
	}
	return list
}

// countedPod returns what one pod counts, under all names that a quota may have for it.
func countedPod(pod *corev1.PodSpec) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	list := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, quantity := range snapshot.PodRequests(pod) {
		list["requests."+name] = quantity
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			list[name] = quantity
		}
	}
	for name, quantity := range podLimits(pod) {
		list["limits."+name] = quantity
	}
	return list
}

// inScope reports whether the pod is in the scopes of a quota.
func inScope(quota *corev1.ResourceQuota, pod *corev1.PodSpec) bool {
	for _, scope := range quota.Spec.Scopes {
		if !matches(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return false
		}
	}
	if quota.Spec.ScopeSelector == nil {
		return true
	}
	return !slices.ContainsFunc(quota.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
		return !matches(r, pod)
	})
}

func matches(r corev1.ScopedResourceSelectorRequirement, pod *corev1.PodSpec) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod.Affinity)
	case corev1.ResourceQuotaScopePriorityClass:
		class := pod.PriorityClassName
		switch r.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(r.Values, class)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(r.Values, class)
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == ""
		}
		return class != ""
	}
	return false // a scope of other objects than pods
}

func crossesNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	weighted := func(list []corev1.WeightedPodAffinityTerm) {
		for i := range list {
			terms = append(terms, list[i].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// countQuota compares what the set adds with each limit that it counts towards, and then counts it as used.
func countQuota(quotas []corev1.ResourceQuota, u usage) []QuotaLine {
	var lines []QuotaLine
	for i := range quotas {
		quota := &quotas[i]
		adds := u.of(quota)
		limits := quota.Status.Hard
		if limits == nil {
			limits = quota.Spec.Hard
		}
		if quota.Status.Used == nil {
			quota.Status.Used = corev1.ResourceList{}
		}
		for _, name := range sets.List(sets.KeySet(limits)) {
			quantity, counted := adds[name]
			if !counted || quantity.IsZero() {
				continue
			}
			hard, used := limits[name], quota.Status.Used[name]
			line := QuotaLine{Quota: quota.Name, Resource: string(name), Adds: quantity.String(), Used: used.String(), Hard: hard.String()}
			used = used.DeepCopy()
			used.Add(quantity)
			if used.Cmp(hard) > 0 {
				short := used.DeepCopy()
				short.Sub(hard)
				line.Short = short.String()
			}
			quota.Status.Used[name] = used
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b QuotaLine) int { return cmp.Compare(a.Quota, b.Quota) })
	return lines
}

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
