// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// ChildOf returns what decisions use of a LeaderWorkerSet.
func ChildOf(lws *leaderworkersetv1.LeaderWorkerSet) Child {
	c := Child{
		Ref: Ref{Name: lws.Name, UID: lws.UID}, ResourceVersion: lws.ResourceVersion,
		Role: lws.Labels[disaggregatedsetv1.RoleLabelKey], Revision: lws.Labels[disaggregatedsetv1.RevisionLabelKey],
		Annotated: len(lws.Annotations) > 0, Replicas: max(0, ptr.Deref(lws.Spec.Replicas, 1)),
		Current: lws.Status.Replicas, Ready: lws.Status.ReadyReplicas, Updated: lws.Status.UpdatedReplicas,
		Created: lws.CreationTimestamp, Deleting: lws.DeletionTimestamp != nil,
	}
	c.Slice, c.Legacy = sliceOf(lws.Labels)
	if trouble := lwshelper.Trouble(lws.Status.Conditions); trouble != nil {
		c.Trouble = &hostplan.Refusal{Reason: trouble.Reason, Message: trouble.Message}
	}
	if value, found := lws.Annotations[disaggregatedsetv1.InitialReplicasAnnotationKey]; found {
		if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 0 {
			c.Initial = &n
		}
	}
	return c
}

// ServiceOf returns what decisions use of a Service.
func ServiceOf(service *corev1.Service) Service {
	s := Service{
		Ref: Ref{Name: service.Name, UID: service.UID}, Revision: service.Labels[disaggregatedsetv1.RevisionLabelKey],
		Deleting: service.DeletionTimestamp != nil,
	}
	s.Slice, _ = sliceOf(service.Labels)
	return s
}

// sliceOf returns the slice of a child by its labels. Children of early versions have no slice, and belong to the first one.
func sliceOf(labels map[string]string) (slice int32, legacy bool) {
	value, found := labels[disaggregatedsetv1.SliceLabelKey]
	if !found {
		return 0, true
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return -1, false
	}
	return int32(n), false
}

// creation plans the LeaderWorkerSet of a role in the slice. replicas is at most MaxReplicas.
func (s *slice) creation(role roleState, replicas int64) Creation {
	return Creation{
		Name: helper.SetName(s.obs.Set.Name, s.index, s.revision, role.Name), Role: role.DisaggregatedRoleSpec,
		Slice: s.index, Revision: s.revision, Replicas: int32(replicas),
	}
}

// Child returns the LeaderWorkerSet, which may have fields that its server fills in.
func (c Creation) Child(ds *disaggregatedsetv1.DisaggregatedSet) *leaderworkersetv1.LeaderWorkerSet {
	role, slice := c.Role, c.Slice
	labels := helper.Labels(ds.Name, slice, c.Revision, role.Name)
	lws := &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Namespace: ds.Namespace,
			Labels: hostplan.Merged(role.Labels, labels), Annotations: maps.Clone(role.Annotations),
			OwnerReferences: []metav1.OwnerReference{ownerReference(ds)},
		},
		Spec: *role.Spec.DeepCopy(),
	}
	lws.Spec.Replicas = ptr.To(c.Replicas)
	template := &lws.Spec.LeaderWorkerTemplate
	for _, pod := range []*corev1.PodTemplateSpec{template.LeaderTemplate, &template.WorkerTemplate} {
		if pod != nil {
			pod.Labels = hostplan.Merged(pod.Labels, labels)
			addPlacement(pod, ds.Spec.PlacementPolicy, ds.Name, slice)
		}
	}
	return lws
}

func ownerReference(ds *disaggregatedsetv1.DisaggregatedSet) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: disaggregatedsetv1.SchemeGroupVersion.String(), Kind: "DisaggregatedSet", Name: ds.Name, UID: ds.UID,
		Controller: ptr.To(true),
	}
}

// newService returns the headless Service of a LeaderWorkerSet, which has the addresses of pods that are ready.
func newService(ds *disaggregatedsetv1.DisaggregatedSet, child Child) *corev1.Service {
	labels := serviceLabels(ds.Name, child)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: helper.ServiceName(child.Name), Namespace: ds.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ownerReference(ds)},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: maps.Clone(labels)},
	}
}

// serviceLabels returns the labels of the Service of a LeaderWorkerSet, which are its selector, too.
func serviceLabels(set string, child Child) map[string]string {
	labels := map[string]string{
		disaggregatedsetv1.SetNameLabelKey: set, disaggregatedsetv1.RoleLabelKey: child.Role, disaggregatedsetv1.RevisionLabelKey: child.Revision,
	}
	if !child.Legacy {
		labels[disaggregatedsetv1.SliceLabelKey] = strconv.Itoa(int(child.Slice))
	}
	return labels
}

// scalerOwner returns the reference of a scaler to its set.
func scalerOwner(ds *disaggregatedsetv1.DisaggregatedSet) metav1.OwnerReference {
	owner := ownerReference(ds)
	owner.BlockOwnerDeletion = ptr.To(true)
	return owner
}

// newScaler returns the scaler of a role.
func newScaler(ds *disaggregatedsetv1.DisaggregatedSet, role string, replicas int64) *disaggregatedsetv1.DisaggregatedSetRoleScaler {
	return &disaggregatedsetv1.DisaggregatedSetRoleScaler{
		ObjectMeta: metav1.ObjectMeta{
			Name: helper.ScalerName(ds.Name, role), Namespace: ds.Namespace,
			Labels:          map[string]string{disaggregatedsetv1.SetNameLabelKey: ds.Name, disaggregatedsetv1.RoleLabelKey: role},
			OwnerReferences: []metav1.OwnerReference{scalerOwner(ds)},
		},
		Spec: disaggregatedsetv1.DisaggregatedSetRoleScalerSpec{Replicas: int32(min(replicas, leaderworkersetv1.MaxReplicas))},
	}
}

// addPlacement adds the terms of the policy to the affinity of a template: its pods go where those of their slice are,
// and not where those of other slices are.
func addPlacement(pod *corev1.PodTemplateSpec, policy *disaggregatedsetv1.PlacementPolicy, set string, slice int32) {
	if policy == nil || policy.Type == "" || policy.Type == disaggregatedsetv1.PlacementNone {
		return
	}
	index := strconv.Itoa(int(slice))
	mine := requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpIn, set)
	labeled := requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpExists)
	others := []metav1.LabelSelectorRequirement{mine}
	if slice == 0 { // children of early versions, without the label, are of slice 0
		others = append(others, labeled)
	}
	others = append(others, requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpNotIn, index))
	apart := []corev1.PodAffinityTerm{term(policy.Topology, others...)}
	if policy.Type == disaggregatedsetv1.PlacementExclusiveTopology {
		apart = append(apart, term(policy.Topology, requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpExists),
			requirement(disaggregatedsetv1.SetNameLabelKey, metav1.LabelSelectorOpNotIn, set), labeled))
	}

	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	affinity := pod.Spec.Affinity
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	together, away := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		&affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*together = append(*together, term(policy.Topology, mine, requirement(disaggregatedsetv1.SliceLabelKey, metav1.LabelSelectorOpIn, index)))
	*away = append(*away, apart...)
}

func term(topology string, requirements ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}
