// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// applyLeader brings the leader StatefulSet to where it should be.
func applyLeader(s *snapshot) Plan {
	p := Plan{Reading: &Reading{Set: s.Set, Revision: s.rev.same}}
	if s.LeaderTaken {
		p.RequeueAfter = nameFreeAfter
		return p
	}
	r := rolloutOf(s)
	t := r.decide()
	p.CreateRevision, p.RevisionEvent = s.rev.create, s.rev.event
	right := &Reading{Set: s.Set, Revision: s.rev.same, Leader: s.Leader, Applied: s.Applied, Key: s.rev.key, Partition: t.partition,
		Replicas: t.count}
	created := OwnedAsCreated(s.Leader) // until it is applied, which makes its fields those of applies
	if !created && s.Before.hasLeader(s.Observed, s.rev.key, t) {
		p.Reading = right
		return p
	}
	intended := leaderStatefulSet(s.Set, s.rev.key, t)
	mark(s.Gang, &intended.Spec.Template)
	if !created && s.Applied == ApplyHash(intended) && unchanged(s, intended) {
		p.Reading = right
		return p
	}
	p.ApplyLeader, p.LeaderEvents = intended, leaderEvents(s.Set.Name, s.rev.key, r, t)
	return p
}

// unchanged returns whether the leader StatefulSet has what was applied. The API drops values of features that are off:
// an object of the generation that the application had has what there can be.
func unchanged(s *snapshot, intended *appsv1.StatefulSet) bool {
	switch {
	case s.Leader == nil:
		return false
	case s.AppliedGeneration != 0 && s.Leader.Generation == s.AppliedGeneration:
		return holds(&s.Leader.ObjectMeta, &intended.ObjectMeta)
	}
	return holds(s.Leader, intended)
}

func rolloutOf(s *snapshot) rollout {
	set := s.Set
	r := rollout{
		replicas: helper.Replicas(set), unavailable: helper.MaxUnavailable(set), surge: helper.MaxSurge(set), lowest: helper.Partition(set),
		changed: s.rev.changed, paused: helper.Paused(set), groups: s.groups, now: s.Now.Time,
	}
	if s.Leader == nil {
		return r
	}
	r.exists, r.partition, r.count = true, partitionOf(s.Leader), leaderCount(s.Leader)
	r.resized = s.Leader.Annotations[leaderworkersetv1.ReplicasAnnotationKey] != strconv.Itoa(int(r.replicas))
	return r
}

func partitionOf(sts *appsv1.StatefulSet) int32 {
	if u := sts.Spec.UpdateStrategy.RollingUpdate; u != nil {
		return max(0, ptr.Deref(u.Partition, 0))
	}
	return 0
}

// ReleasingNone returns the leader StatefulSet as it is applied to one that was not observed, for example because it has lost its labels:
// its controller replaces no leader pod that it would not replace now. The next pass sees which groups are ready.
func ReleasingNone(wanted, live *appsv1.StatefulSet) *appsv1.StatefulSet {
	partition := partitionOf(live)
	if live.Labels[leaderworkersetv1.RevisionKey] != wanted.Labels[leaderworkersetv1.RevisionKey] {
		partition = leaderCount(live)
	}
	if partition <= partitionOf(wanted) {
		return wanted
	}
	next := wanted.DeepCopy()
	if next.Spec.UpdateStrategy.RollingUpdate == nil {
		next.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
	}
	next.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
	return next
}

// leaderStatefulSet returns the leader StatefulSet as it should be: exactly what is applied.
func leaderStatefulSet(set *leaderworkersetv1.LeaderWorkerSet, key string, t target) *appsv1.StatefulSet {
	kind := set.Spec.RolloutStrategy.Type
	if kind == "" {
		kind = leaderworkersetv1.RolloutStrategyRollingUpdate
	}
	own := map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.RevisionKey: key}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, Namespace: set.Namespace,
			Labels: hostplan.Merged(set.Labels, own),
			Annotations: hostplan.Merged(set.Annotations, map[string]string{leaderworkersetv1.ReplicasAnnotationKey: strconv.Itoa(
				int(helper.Replicas(set)))}),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)},
		},
		Spec: appsv1.StatefulSetSpec{
			// Of every subdomain policy: the subdomain of pods is set when they are created.
			ServiceName:         set.Name,
			Replicas:            ptr.To(t.count),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type: appsv1.StatefulSetUpdateStrategyType(kind),
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
					Partition: ptr.To(t.partition), MaxUnavailable: ptr.To(intstr.FromInt32(helper.LeaderMaxUnavailable(set))),
				},
			},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.WorkerIndexLabelKey: "0",
			}},
			Template:                             leaderTemplate(set, key),
			VolumeClaimTemplates:                 claimTemplates(set),
			PersistentVolumeClaimRetentionPolicy: set.Spec.LeaderWorkerTemplate.PersistentVolumeClaimRetentionPolicy.DeepCopy(),
		},
	}
}

// leaderTemplate returns the template of the leader pods.
func leaderTemplate(set *leaderworkersetv1.LeaderWorkerSet, key string) corev1.PodTemplateSpec {
	out := *helper.LeaderTemplate(set).DeepCopy()
	out.Labels = hostplan.Merged(out.Labels, map[string]string{
		leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.WorkerIndexLabelKey: "0", leaderworkersetv1.RevisionKey: key,
	})
	out.Annotations = hostplan.Merged(out.Annotations, groupAnnotations(set))
	if helper.UniquePerReplica(set.Spec.NetworkConfig) {
		out.Annotations[leaderworkersetv1.SubdomainPolicyAnnotationKey] = string(leaderworkersetv1.SubdomainUniquePerReplica)
	}
	return out
}

// groupAnnotations returns the annotations that all pods of the groups of a set have.
func groupAnnotations(set *leaderworkersetv1.LeaderWorkerSet) map[string]string {
	out := map[string]string{leaderworkersetv1.SizeAnnotationKey: strconv.Itoa(int(helper.Size(set)))}
	if key := set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]; key != "" {
		out[leaderworkersetv1.ExclusiveKeyAnnotationKey] = key
	}
	if set.Spec.LeaderWorkerTemplate.SubGroupPolicy == nil {
		return out
	}
	out[leaderworkersetv1.SubGroupPolicyTypeAnnotationKey] = string(helper.SubGroupType(set))
	out[leaderworkersetv1.SubGroupSizeAnnotationKey] = strconv.Itoa(int(helper.SubGroupSize(set)))
	if key := set.Annotations[leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey]; key != "" {
		out[leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey] = key
	}
	return out
}

// claimTemplates returns the volume claim templates of the StatefulSets of a set. Of each claim, only what these fields say is used.
func claimTemplates(set *leaderworkersetv1.LeaderWorkerSet) (out []corev1.PersistentVolumeClaim) {
	for i := range set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates {
		c := set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates[i].DeepCopy()
		out = append(out, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: c.Spec.AccessModes, StorageClassName: c.Spec.StorageClassName, VolumeMode: c.Spec.VolumeMode, Resources: c.Spec.Resources,
			},
		})
	}
	return out
}

// leaderEvents returns what is reported once the leader StatefulSet was applied. A step is related to the leader pod with the lowest index
// in it: of events that differ in their notes only, the second one would be taken for a repetition of the first.
func leaderEvents(name, key string, r rollout, t target) (out []Event) {
	related := ""
	normal := func(reason, action, note string) {
		out = append(out, Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note, Related: related})
	}
	if !r.exists {
		normal(leaderworkersetv1.ReasonGroupsProgressing, ActionCreate, "Created leader statefulset "+name)
		return out
	}
	related = helper.LeaderPodName(name, t.count)
	switch last := r.count - 1; {
	case t.count == last:
		normal(leaderworkersetv1.ReasonGroupsProgressing, ActionDelete, fmt.Sprintf("deleting surge replica %s-%d", name, last))
	case t.count < last:
		normal(leaderworkersetv1.ReasonGroupsProgressing, ActionDelete, fmt.Sprintf("deleting surge replicas from %s-%d to %s-%d", name, t.count,
			name, last))
	}
	related = helper.LeaderPodName(name, t.partition)
	switch {
	case r.changed && r.paused:
		normal(reasonRolloutPaused, ActionUpdate, fmt.Sprintf("The rolling update to revision %s waits because spec.paused is true", key))
	case r.changed:
	case t.partition == r.partition-1:
		normal(leaderworkersetv1.ReasonGroupsUpdating, ActionUpdate, fmt.Sprintf("Updating replica %d", t.partition))
	case t.partition < r.partition:
		normal(leaderworkersetv1.ReasonGroupsUpdating, ActionUpdate, fmt.Sprintf("Updating replicas %d to %d (inclusive)", t.partition,
			r.partition-1))
	}
	return out
}
