// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSet runs replicas of a group of pods: one leader and its workers, which start, fail, roll and scale together.
type LeaderWorkerSet struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name is the prefix of the names of all StatefulSets, pods and Services
	// of the set. It must be a DNS-1035 label.
	metav1.ObjectMeta

	// spec describes the groups that the user wants.
	Spec LeaderWorkerSetSpec

	// status is what the controller last observed. It can be changed only through the status subresource.
	Status LeaderWorkerSetStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetList is a list of LeaderWorkerSets.
type LeaderWorkerSetList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the LeaderWorkerSets of the list.
	Items []LeaderWorkerSet
}

// LeaderWorkerSetSpec describes the groups of a set.
type LeaderWorkerSetSpec struct {
	// replicas is the number of groups, from 0 to 1000000. Defaults to 1.
	Replicas *int32

	// leaderWorkerTemplate describes the pods of each group.
	LeaderWorkerTemplate LeaderWorkerTemplate

	// rolloutStrategy is how groups are replaced when leaderWorkerTemplate or networkConfig changes.
	RolloutStrategy RolloutStrategy

	// startupPolicy is when the workers of a group are created: LeaderCreated as soon as the leader pod exists, LeaderReady once it is
	// ready. Defaults to LeaderCreated.
	StartupPolicy StartupPolicyType

	// networkConfig is how the pods of a group find each other.
	NetworkConfig *NetworkConfig

	// paused stops the rolling update: no further group is replaced until it is false again. Groups that fail are still recreated, and
	// the set can still be scaled. Defaults to false. No field of upstream.
	Paused *bool

	// revisionHistoryLimit is the number of former revisions that are kept for a rollback once an update is complete, from 0 to 100.
	// Defaults to 0. No field of upstream.
	RevisionHistoryLimit *int32

	// groupRestartBackoff delays the restarts of a group that fails again and again. Absent for no delay. No field of upstream.
	GroupRestartBackoff *GroupRestartBackoff
}

// LeaderWorkerTemplate describes the pods of a group.
type LeaderWorkerTemplate struct {
	// leaderTemplate is the template of leader pods. Defaults to workerTemplate.
	LeaderTemplate *corev1.PodTemplateSpec

	// workerTemplate is the template of worker pods.
	WorkerTemplate corev1.PodTemplateSpec

	// size is the number of pods of a group, the leader included: 1 or more. Defaults to 1.
	GroupSize *int32

	// restartPolicy is what happens to a group when a container of it restarts or a pod of it is deleted: with
	// RecreateGroupOnPodRestart all of its pods are recreated; with RecreateGroupAfterStart so if all of them have started
	// before; with None only that pod is. The former value Default is stored as None. Defaults to
	// RecreateGroupOnPodRestart.
	RestartPolicy RestartPolicyType

	// subGroupPolicy divides each group into subgroups. It cannot be added or removed later.
	SubGroupPolicy *SubGroupPolicy

	// volumeClaimTemplates are the claims that each pod gets, as in a StatefulSet. StatefulSets do not allow changes of them, so that a
	// change is never applied to a set that exists.
	VolumeClaimTemplates []corev1.PersistentVolumeClaim

	// persistentVolumeClaimRetentionPolicy is what becomes of claims when a StatefulSet is deleted or scaled down, as in a StatefulSet.
	PersistentVolumeClaimRetentionPolicy *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy

	// maxGroupRestarts is how often each group may be recreated by restartPolicy: 0 or more. A group that would need one
	// more makes the set Failed, and is left as it is. Only with the restart policies RecreateGroupOnPodRestart and
	// RecreateGroupAfterStart. A change does not roll groups. Absent for no limit.
	MaxGroupRestarts *int32
}

// RolloutStrategy is how groups are replaced.
type RolloutStrategy struct {
	// type is the strategy: RollingUpdate. Defaults to RollingUpdate.
	Type RolloutStrategyType

	// rollingUpdateConfiguration holds the parameters of RollingUpdate.
	RollingUpdateConfiguration *RollingUpdateConfiguration
}

// RollingUpdateConfiguration holds the parameters of a rolling update.
type RollingUpdateConfiguration struct {
	// partition is the lowest index of the groups that are updated: 0 or more. Groups below it keep their revision. Defaults to 0.
	Partition *int32

	// maxUnavailable is how many groups may be unavailable during an update: a number, or a percentage of replicas,
	// rounded down. It must not be 0 if maxSurge is 0. Defaults to 1.
	MaxUnavailable *intstr.IntOrString

	// maxSurge is how many groups may exist above replicas during an update: a number, or a percentage of replicas, rounded up. Defaults to 0.
	MaxSurge *intstr.IntOrString
}

// SubGroupPolicy divides groups into subgroups.
type SubGroupPolicy struct {
	// subGroupPolicyType is what becomes of the leader: with LeaderWorker it belongs to the first subgroup, with LeaderExcluded to none.
	// Defaults to LeaderWorker.
	Type *SubGroupPolicyType

	// subGroupSize is the number of pods of a subgroup. It must divide size, or size less 1; then the leader is an extra
	// member of the first subgroup. With LeaderExcluded it must divide size less 1. Required and immutable.
	SubGroupSize *int32
}

// NetworkConfig is how the pods of a group find each other.
type NetworkConfig struct {
	// subdomainPolicy is which headless Services exist: with Shared one for the set, with UniquePerReplica one for each group. Defaults to
	// Shared.
	SubdomainPolicy *SubdomainPolicy
}

// GroupRestartBackoff is how long a group that failed waits before it is recreated: baseSeconds after the second
// failure in a row, twice as long after each further one, at most maxSeconds. A group that has been ready for
// maxSeconds begins again without delay.
type GroupRestartBackoff struct {
	// baseSeconds is the first delay, from 1 to 3600. Defaults to 10.
	BaseSeconds *int32

	// maxSeconds is the longest delay, from baseSeconds to 86400. Defaults to 300, or to baseSeconds if that is more.
	MaxSeconds *int32
}

// RestartPolicyType is what happens to a group when a pod of it fails.
type RestartPolicyType string

const (
	// RestartPolicyRecreateGroupOnPodRestart recreates the group.
	RestartPolicyRecreateGroupOnPodRestart RestartPolicyType = "RecreateGroupOnPodRestart"
	// RestartPolicyRecreateGroupAfterStart recreates the group if all of its pods have started.
	RestartPolicyRecreateGroupAfterStart RestartPolicyType = "RecreateGroupAfterStart"
	// RestartPolicyNone leaves the other pods alone.
	RestartPolicyNone RestartPolicyType = "None"
	// RestartPolicyDefault is the former name of None, which is stored in its place.
	RestartPolicyDefault RestartPolicyType = "Default"
)

// RolloutStrategyType is how groups are replaced.
type RolloutStrategyType string

// RolloutStrategyRollingUpdate replaces groups from the highest index down.
const RolloutStrategyRollingUpdate RolloutStrategyType = "RollingUpdate"

// StartupPolicyType is when workers are created.
type StartupPolicyType string

const (
	// StartupPolicyLeaderCreated creates workers as soon as the leader pod exists.
	StartupPolicyLeaderCreated StartupPolicyType = "LeaderCreated"
	// StartupPolicyLeaderReady creates workers once the leader pod is ready.
	StartupPolicyLeaderReady StartupPolicyType = "LeaderReady"
)

// SubGroupPolicyType is what becomes of the leader in subgroups.
type SubGroupPolicyType string

const (
	// SubGroupPolicyLeaderWorker puts the leader into the first subgroup.
	SubGroupPolicyLeaderWorker SubGroupPolicyType = "LeaderWorker"
	// SubGroupPolicyLeaderExcluded puts the leader into no subgroup.
	SubGroupPolicyLeaderExcluded SubGroupPolicyType = "LeaderExcluded"
)

// SubdomainPolicy is which headless Services exist.
type SubdomainPolicy string

const (
	// SubdomainShared is one Service for the set.
	SubdomainShared SubdomainPolicy = "Shared"
	// SubdomainUniquePerReplica is one Service for each group.
	SubdomainUniquePerReplica SubdomainPolicy = "UniquePerReplica"
)
