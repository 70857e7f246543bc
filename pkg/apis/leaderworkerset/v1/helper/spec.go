// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Replicas returns the number of groups that a set wants.
func Replicas(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	return max(0, ptr.Deref(set.Spec.Replicas, 1))
}

// Size returns the number of pods of a group, the leader included.
func Size(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	return max(1, ptr.Deref(set.Spec.LeaderWorkerTemplate.GroupSize, 1))
}

// LeaderTemplate returns the template of the leader pods, which is not a copy.
func LeaderTemplate(set *leaderworkersetv1.LeaderWorkerSet) *corev1.PodTemplateSpec {
	if t := set.Spec.LeaderWorkerTemplate.LeaderTemplate; t != nil {
		return t
	}
	return &set.Spec.LeaderWorkerTemplate.WorkerTemplate
}

// MaxUnavailable returns how many groups may be unavailable during an update. It may be more than there are groups, and
// 0: a scale request can make it so even without a surge.
func MaxUnavailable(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	if c := set.Spec.RolloutStrategy.RollingUpdateConfiguration; c != nil && c.MaxUnavailable != nil {
		return scaled(c.MaxUnavailable, Replicas(set), false, 1)
	}
	return 1
}

// MaxSurge returns how many groups may exist above replicas during an update, at most replicas.
func MaxSurge(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	if c := set.Spec.RolloutStrategy.RollingUpdateConfiguration; c != nil && c.MaxSurge != nil {
		return min(scaled(c.MaxSurge, Replicas(set), true, 0), Replicas(set))
	}
	return 0
}

// Partition returns the lowest index of the groups that are updated. It may be more than there are groups.
func Partition(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	if c := set.Spec.RolloutStrategy.RollingUpdateConfiguration; c != nil {
		return max(0, ptr.Deref(c.Partition, 0))
	}
	return 0
}

// LeaderMaxUnavailable returns maxUnavailable of the leader StatefulSet. What bounds an update is its partition.
func LeaderMaxUnavailable(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	sum := int64(MaxUnavailable(set)) + int64(MaxSurge(set))
	return int32(min(max(sum, 1), math.MaxInt32))
}

// Paused returns whether the rolling update of a set is paused.
func Paused(set *leaderworkersetv1.LeaderWorkerSet) bool { return ptr.Deref(set.Spec.Paused, false) }

// UniquePerReplica returns whether each group has a headless Service of its own.
func UniquePerReplica(network *leaderworkersetv1.NetworkConfig) bool {
	return network != nil && ptr.Deref(network.SubdomainPolicy, "") == leaderworkersetv1.SubdomainUniquePerReplica
}

// SubGroupSize returns the number of pods of a subgroup; 0 if there are no subgroups.
func SubGroupSize(set *leaderworkersetv1.LeaderWorkerSet) int32 {
	if p := set.Spec.LeaderWorkerTemplate.SubGroupPolicy; p != nil {
		return max(0, ptr.Deref(p.SubGroupSize, 0))
	}
	return 0
}

// SubGroupType returns what becomes of leaders in subgroups; empty if there are no subgroups.
func SubGroupType(set *leaderworkersetv1.LeaderWorkerSet) leaderworkersetv1.SubGroupPolicyType {
	if p := set.Spec.LeaderWorkerTemplate.SubGroupPolicy; p != nil {
		return ptr.Deref(p.Type, leaderworkersetv1.SubGroupPolicyLeaderWorker)
	}
	return ""
}

// scaled returns what a number or a percentage of total is; whatever cannot be read is fallback.
func scaled(value *intstr.IntOrString, total int32, roundUp bool, fallback int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(total), roundUp)
	if err != nil {
		return fallback
	}
	return int32(min(max(n, 0), math.MaxInt32))
}

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

// requestsTPUs looks at requests only where there is no limit.
func requestsTPUs(resources *corev1.ResourceRequirements) bool {
	if limit, found := resources.Limits[tpuResource]; found {
		return !limit.IsZero()
	}
	request := resources.Requests[tpuResource]
	return !request.IsZero()
}
