// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// Keys of labels (docs/reference/leaderworkerset.md#labels).
const (
	// SetNameLabelKey is on all children: the name of the set.
	SetNameLabelKey = "leaderworkerset.sigs.k8s.io/name"
	// RevisionKey is the key of the revision.
	RevisionKey = "leaderworkerset.sigs.k8s.io/template-revision-hash"
	// WorkerIndexLabelKey is the index of a pod in its group; that of the leader is 0.
	WorkerIndexLabelKey = "leaderworkerset.sigs.k8s.io/worker-index"
	// GroupIndexLabelKey is the index of the group.
	GroupIndexLabelKey = "leaderworkerset.sigs.k8s.io/group-index"
	// GroupKeyLabelKey is a hash that the pods of one group share.
	GroupKeyLabelKey = "leaderworkerset.sigs.k8s.io/group-key"
	// SubGroupIndexLabelKey is the index of the subgroup in its group.
	SubGroupIndexLabelKey = "leaderworkerset.sigs.k8s.io/subgroup-index"
	// SubGroupKeyLabelKey is a hash that the pods of one subgroup share.
	SubGroupKeyLabelKey = "leaderworkerset.sigs.k8s.io/subgroup-key"
)

// Keys of annotations (docs/reference/leaderworkerset.md#annotations).
const (
	// SizeAnnotationKey is on pods: the number of pods of the group.
	SizeAnnotationKey = "leaderworkerset.sigs.k8s.io/size"
	// ReplicasAnnotationKey is on the leader StatefulSet: spec.replicas of the set.
	ReplicasAnnotationKey = "leaderworkerset.sigs.k8s.io/replicas"
	// LeaderPodNameAnnotationKey is on worker pods: the name of their leader.
	LeaderPodNameAnnotationKey = "leaderworkerset.sigs.k8s.io/leader-name"
	// ExclusiveKeyAnnotationKey asks for groups that are alone in their domain. Its value is the key of a node label.
	ExclusiveKeyAnnotationKey = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	// SubGroupExclusiveKeyAnnotationKey asks for subgroups that are alone in their domain.
	SubGroupExclusiveKeyAnnotationKey = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
	// SubGroupSizeAnnotationKey is on pods: the number of pods of a subgroup.
	SubGroupSizeAnnotationKey = "leaderworkerset.sigs.k8s.io/subgroup-size"
	// SubGroupPolicyTypeAnnotationKey is on pods: the type of the subgroup policy.
	SubGroupPolicyTypeAnnotationKey = "leaderworkerset.sigs.k8s.io/subgroup-policy-type"
	// SubdomainPolicyAnnotationKey is on leader pods of the policy UniquePerReplica.
	SubdomainPolicyAnnotationKey = "leaderworkerset.sigs.k8s.io/subdomainPolicy"
	// LeaderRequestsTPUsAnnotationKey is on worker pods whose leader requests TPUs.
	LeaderRequestsTPUsAnnotationKey = "leaderworkerset.sigs.k8s.io/leader-requests-tpus"
	// RecreateGroupAfterStartAnnotationKey turns RecreateGroupOnPodRestart into RecreateGroupAfterStart.
	RecreateGroupAfterStartAnnotationKey = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"
	// PodGroupNameAnnotationKey is on pods that are scheduled as a gang: the name of the PodGroup.
	PodGroupNameAnnotationKey = "scheduling.k8s.io/group-name"
	// CoschedulingLabelKey is on pods that are scheduled as a gang by the coscheduling plugin: the name of the PodGroup.
	CoschedulingLabelKey = "scheduling.x-k8s.io/pod-group"
	// VolcanoAnnotationPrefix is the prefix of the annotations that PodGroups get from their set.
	VolcanoAnnotationPrefix = "volcano.sh/"
	// GangAnnotationKey is on pod templates of sets whose groups are scheduled as gangs: the scheduler of gangs, one of
	// the Gang values. The pod webhook derives the name of the PodGroup, <set>-<group>-<key of the revision>, which a
	// template of all leaders cannot have. No key of upstream, whose webhook knows the scheduler from its configuration.
	GangAnnotationKey = "jobset-apiserver.io/gang"
	// VolcanoQueueAnnotationKey is the queue of the PodGroups of a set.
	VolcanoQueueAnnotationKey = "scheduling.volcano.sh/queue-name"
)

// Values of GangAnnotationKey.
const (
	// GangVolcano makes the webhook set the annotation PodGroupNameAnnotationKey.
	GangVolcano = "volcano"
	// GangCoscheduling makes the webhook set the label CoschedulingLabelKey.
	GangCoscheduling = "coscheduling"
	// GangKubernetes makes the webhook set spec.schedulingGroup.podGroupName.
	GangKubernetes = "kubernetes"
)

// Environment of all containers (docs/reference/leaderworkerset.md#environment).
const (
	// LeaderAddressEnv is the DNS name of the leader, without the cluster domain.
	LeaderAddressEnv = "LWS_LEADER_ADDRESS"
	// GroupSizeEnv is the number of pods of the group.
	GroupSizeEnv = "LWS_GROUP_SIZE"
	// WorkerIndexEnv is the index of the pod in its group.
	WorkerIndexEnv = "LWS_WORKER_INDEX"
)

// Conditions and their reasons.
const (
	// ConditionAvailable means that all groups are ready and updated.
	ConditionAvailable = "Available"
	// ConditionProgressing means that groups are being created, or become ready.
	ConditionProgressing = "Progressing"
	// ConditionUpdateInProgress means that groups are being replaced.
	ConditionUpdateInProgress = "UpdateInProgress"
	// ConditionFailed means that a group has used up maxGroupRestarts. No condition of the released upstream, which has named it. A set may
	// be Available at the same time: the group is left as it is, and its pods may become ready again.
	ConditionFailed = "Failed"
	// ConditionPodCreationFailure means that the API refuses pods of the set to the StatefulSet controller, for example
	// because a quota is used up. Upstream has no such condition.
	ConditionPodCreationFailure = "PodCreationFailure"
	// ConditionPodsUnschedulable means that the scheduler has found no node for pods of the set for some time. Upstream has no such
	// condition.
	ConditionPodsUnschedulable = "PodsUnschedulable"
	// ConditionChildCreationFailure means that children of the set cannot be created or updated: the API refuses them, other objects have
	// their names, or another party undoes each write. It has the reasons of JobCreationFailure of JobSets, and NameConflict.
	// Upstream has no such condition.
	ConditionChildCreationFailure = "ChildCreationFailure"

	// ReasonAllGroupsReady is the reason of Available.
	ReasonAllGroupsReady = "AllGroupsReady"
	// ReasonGroupsProgressing is the reason of Progressing.
	ReasonGroupsProgressing = "GroupsProgressing"
	// ReasonGroupsUpdating is the reason of UpdateInProgress.
	ReasonGroupsUpdating = "GroupsUpdating"
	// ReasonPodsCreated is the reason of PodCreationFailure, which is False, once no pods are refused.
	ReasonPodsCreated = reasons.PodsCreated
	// ReasonUnschedulable is the reason of PodsUnschedulable, and ReasonPodsScheduled its reason once no pod waits for a node.
	ReasonUnschedulable = reasons.Unschedulable
	ReasonPodsScheduled = reasons.PodsScheduled
	// ReasonMaxGroupRestartsExceeded is the reason of Failed.
	ReasonMaxGroupRestartsExceeded = "MaxGroupRestartsExceeded"
)

// FieldManager is the manager of what the controller applies and creates.
const FieldManager = "lws"

// Limits.
const (
	// MaxReplicas is the highest number of groups.
	MaxReplicas = 1_000_000
	// MaxGroupStatuses is the highest number of entries of status.groups, and of groups that are restarted by index.
	MaxGroupStatuses = 1000
	// MaxRevisionHistory is the highest spec.revisionHistoryLimit.
	MaxRevisionHistory = 100
)
