// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +genclient
// +genclient:method=Restart,verb=create,subresource=restart,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetRestart,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetRestart
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetRollback,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetRollback
// +genclient:method=Pause,verb=create,subresource=pause,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetPause,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetPause
// +genclient:method=Resume,verb=create,subresource=resume,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetResume,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.LeaderWorkerSetResume
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSet runs replicas of a group of pods: one leader and its workers, which start, fail, roll and scale together.
type LeaderWorkerSet struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The name is the prefix of the names of all StatefulSets, pods and Services
	// of the set. It must be a DNS-1035 label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec describes the groups that the user wants.
	// +optional
	Spec LeaderWorkerSetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is what the controller last observed. It can be changed only through the status subresource.
	// +optional
	Status LeaderWorkerSetStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// LeaderWorkerSetList is a list of LeaderWorkerSets.
type LeaderWorkerSetList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the LeaderWorkerSets of the list.
	Items []LeaderWorkerSet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// LeaderWorkerSetSpec describes the groups of a set.
type LeaderWorkerSetSpec struct {
	// replicas is the number of groups, from 0 to 1000000. Defaults to 1.
	// +optional
	// +default=1
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`

	// leaderWorkerTemplate describes the pods of each group.
	LeaderWorkerTemplate LeaderWorkerTemplate `json:"leaderWorkerTemplate" protobuf:"bytes,2,opt,name=leaderWorkerTemplate"`

	// rolloutStrategy is how groups are replaced when leaderWorkerTemplate or networkConfig changes.
	// +optional
	RolloutStrategy RolloutStrategy `json:"rolloutStrategy,omitempty,omitzero" protobuf:"bytes,3,opt,name=rolloutStrategy"`

	// startupPolicy is when the workers of a group are created: LeaderCreated as soon as the leader pod exists, LeaderReady once it is
	// ready. Defaults to LeaderCreated.
	// +optional
	StartupPolicy StartupPolicyType `json:"startupPolicy" protobuf:"bytes,4,opt,name=startupPolicy,casttype=StartupPolicyType"`

	// networkConfig is how the pods of a group find each other.
	// +optional
	NetworkConfig *NetworkConfig `json:"networkConfig,omitempty" protobuf:"bytes,5,opt,name=networkConfig"`

	// paused stops the rolling update: no further group is replaced until it is false again. Groups that fail are still recreated, and
	// the set can still be scaled. Defaults to false. No field of upstream.
	// +optional
	Paused *bool `json:"paused,omitempty" protobuf:"varint,6,opt,name=paused"`

	// revisionHistoryLimit is the number of former revisions that are kept for a rollback once an update is complete, from 0 to 100.
	// Defaults to 0. No field of upstream.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"varint,7,opt,name=revisionHistoryLimit"`

	// groupRestartBackoff delays the restarts of a group that fails again and again. Absent for no delay. No field of upstream.
	// +optional
	GroupRestartBackoff *GroupRestartBackoff `json:"groupRestartBackoff,omitempty" protobuf:"bytes,8,opt,name=groupRestartBackoff"`
}

// LeaderWorkerTemplate describes the pods of a group.
type LeaderWorkerTemplate struct {
	// leaderTemplate is the template of leader pods. Defaults to workerTemplate.
	// +optional
	LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate,omitempty" protobuf:"bytes,1,opt,name=leaderTemplate"`

	// workerTemplate is the template of worker pods.
	WorkerTemplate corev1.PodTemplateSpec `json:"workerTemplate" protobuf:"bytes,2,opt,name=workerTemplate"`

	// size is the number of pods of a group, the leader included: 1 or more. Defaults to 1.
	// +optional
	// +default=1
	GroupSize *int32 `json:"size,omitempty" protobuf:"varint,3,opt,name=size"`

	// restartPolicy is what happens to a group when a container of it restarts or a pod of it is deleted: with
	// RecreateGroupOnPodRestart all of its pods are recreated; with RecreateGroupAfterStart so if all of them have started
	// before; with None only that pod is. The former value Default is stored as None. Defaults to
	// RecreateGroupOnPodRestart.
	// +optional
	// +default="RecreateGroupOnPodRestart"
	RestartPolicy RestartPolicyType `json:"restartPolicy,omitempty" protobuf:"bytes,4,opt,name=restartPolicy,casttype=RestartPolicyType"`

	// subGroupPolicy divides each group into subgroups. It cannot be added or removed later.
	// +optional
	SubGroupPolicy *SubGroupPolicy `json:"subGroupPolicy,omitempty" protobuf:"bytes,5,opt,name=subGroupPolicy"`

	// volumeClaimTemplates are the claims that each pod gets, as in a StatefulSet. StatefulSets do not allow changes of them, so that a
	// change is never applied to a set that exists.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty" protobuf:"bytes,6,rep,name=volumeClaimTemplates"`

	// persistentVolumeClaimRetentionPolicy is what becomes of claims when a StatefulSet is deleted or scaled down, as in a StatefulSet.
	// +optional
	PersistentVolumeClaimRetentionPolicy *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty" protobuf:"bytes,7,opt,name=persistentVolumeClaimRetentionPolicy"`

	// maxGroupRestarts is how often each group may be recreated by restartPolicy: 0 or more. A group that would need one
	// more makes the set Failed, and is left as it is. Only with the restart policies RecreateGroupOnPodRestart and
	// RecreateGroupAfterStart. A change does not roll groups. Absent for no limit.
	// +optional
	MaxGroupRestarts *int32 `json:"maxGroupRestarts,omitempty" protobuf:"varint,8,opt,name=maxGroupRestarts"`
}

// RolloutStrategy is how groups are replaced.
type RolloutStrategy struct {
	// type is the strategy: RollingUpdate. Defaults to RollingUpdate.
	// +optional
	Type RolloutStrategyType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=RolloutStrategyType"`

	// rollingUpdateConfiguration holds the parameters of RollingUpdate.
	// +optional
	RollingUpdateConfiguration *RollingUpdateConfiguration `json:"rollingUpdateConfiguration,omitempty" protobuf:"bytes,2,opt,name=rollingUpdateConfiguration"`
}

// RollingUpdateConfiguration holds the parameters of a rolling update.
type RollingUpdateConfiguration struct {
	// partition is the lowest index of the groups that are updated: 0 or more. Groups below it keep their revision. Defaults to 0.
	// +optional
	// +default=0
	Partition *int32 `json:"partition,omitempty" protobuf:"varint,1,opt,name=partition"`

	// maxUnavailable is how many groups may be unavailable during an update: a number, or a percentage of replicas,
	// rounded down. It must not be 0 if maxSurge is 0. Defaults to 1.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty" protobuf:"bytes,2,opt,name=maxUnavailable"`

	// maxSurge is how many groups may exist above replicas during an update: a number, or a percentage of replicas, rounded up. Defaults to 0.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty" protobuf:"bytes,3,opt,name=maxSurge"`
}

// SubGroupPolicy divides groups into subgroups.
type SubGroupPolicy struct {
	// subGroupPolicyType is what becomes of the leader: with LeaderWorker it belongs to the first subgroup, with LeaderExcluded to none.
	// Defaults to LeaderWorker.
	// +optional
	// +default="LeaderWorker"
	Type *SubGroupPolicyType `json:"subGroupPolicyType,omitempty" protobuf:"bytes,1,opt,name=subGroupPolicyType,casttype=SubGroupPolicyType"`

	// subGroupSize is the number of pods of a subgroup. It must divide size, or size less 1; then the leader is an extra
	// member of the first subgroup. With LeaderExcluded it must divide size less 1. Required and immutable.
	// +optional
	SubGroupSize *int32 `json:"subGroupSize,omitempty" protobuf:"varint,2,opt,name=subGroupSize"`
}

// NetworkConfig is how the pods of a group find each other.
type NetworkConfig struct {
	// subdomainPolicy is which headless Services exist: with Shared one for the set, with UniquePerReplica one for each group. Defaults to
	// Shared.
	// +optional
	// +default="Shared"
	SubdomainPolicy *SubdomainPolicy `json:"subdomainPolicy" protobuf:"bytes,1,opt,name=subdomainPolicy,casttype=SubdomainPolicy"`
}

// GroupRestartBackoff is how long a group that failed waits before it is recreated: baseSeconds after the second
// failure in a row, twice as long after each further one, at most maxSeconds. A group that has been ready for
// maxSeconds begins again without delay.
type GroupRestartBackoff struct {
	// baseSeconds is the first delay, from 1 to 3600. Defaults to 10.
	// +optional
	// +default=10
	BaseSeconds *int32 `json:"baseSeconds,omitempty" protobuf:"varint,1,opt,name=baseSeconds"`

	// maxSeconds is the longest delay, from baseSeconds to 86400. Defaults to 300, or to baseSeconds if that is more.
	// +optional
	MaxSeconds *int32 `json:"maxSeconds,omitempty" protobuf:"varint,2,opt,name=maxSeconds"`
}

// RestartPolicyType is what happens to a group when a pod of it fails.
// +enum
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
// +enum
type RolloutStrategyType string

// RolloutStrategyRollingUpdate replaces groups from the highest index down.
const RolloutStrategyRollingUpdate RolloutStrategyType = "RollingUpdate"

// StartupPolicyType is when workers are created.
// +enum
type StartupPolicyType string

const (
	// StartupPolicyLeaderCreated creates workers as soon as the leader pod exists.
	StartupPolicyLeaderCreated StartupPolicyType = "LeaderCreated"
	// StartupPolicyLeaderReady creates workers once the leader pod is ready.
	StartupPolicyLeaderReady StartupPolicyType = "LeaderReady"
)

// SubGroupPolicyType is what becomes of the leader in subgroups.
// +enum
type SubGroupPolicyType string

const (
	// SubGroupPolicyLeaderWorker puts the leader into the first subgroup.
	SubGroupPolicyLeaderWorker SubGroupPolicyType = "LeaderWorker"
	// SubGroupPolicyLeaderExcluded puts the leader into no subgroup.
	SubGroupPolicyLeaderExcluded SubGroupPolicyType = "LeaderExcluded"
)

// SubdomainPolicy is which headless Services exist.
// +enum
type SubdomainPolicy string

const (
	// SubdomainShared is one Service for the set.
	SubdomainShared SubdomainPolicy = "Shared"
	// SubdomainUniquePerReplica is one Service for each group.
	SubdomainUniquePerReplica SubdomainPolicy = "UniquePerReplica"
)
