// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// LeaderWorkerSetStatus is what the controller last observed of a set.
type LeaderWorkerSetStatus struct {
	// conditions are Available, Progressing and UpdateInProgress, and Failed once a group has used up maxGroupRestarts.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`

	// readyReplicas is the number of groups of which all pods are ready, including the groups of a surge.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"varint,2,opt,name=readyReplicas"`

	// updatedReplicas is the number of groups of the current revision, including the groups of a surge.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"varint,3,opt,name=updatedReplicas"`

	// replicas is the number of groups that have been created, including the groups of a surge.
	// +optional
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,4,opt,name=replicas"`

	// hpaPodSelector selects the leader pods, as a string, for autoscalers.
	// +optional
	HPAPodSelector string `json:"hpaPodSelector,omitempty" protobuf:"bytes,5,opt,name=hpaPodSelector"`

	// observedGeneration is the generation of the set that the controller last processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,6,opt,name=observedGeneration"`

	// groups holds an entry for each group that was recreated after a failure or on request, at most 1000: those
	// with the fewest restarts are dropped when there are more. Entries of groups above replicas are removed. No field of upstream.
	// +optional
	// +listType=map
	// +listMapKey=index
	Groups []GroupStatus `json:"groups,omitempty" protobuf:"bytes,7,rep,name=groups"`

	// restart is the restart that users have requested and that is not complete. No field of upstream.
	// +optional
	Restart *RequestedRestart `json:"restart,omitempty" protobuf:"bytes,8,opt,name=restart"`

	// lastAction is the last action of a user that changed the set. No field of upstream.
	// +optional
	LastAction *LastAction `json:"lastAction,omitempty" protobuf:"bytes,9,opt,name=lastAction"`
}

// GroupStatus is what is known of one group.
type GroupStatus struct {
	// index of the group.
	Index int32 `json:"index" protobuf:"varint,1,opt,name=index"`

	// restarts is how often the group was recreated after a failure. A restart on request does not count.
	// +optional
	Restarts int32 `json:"restarts,omitempty" protobuf:"varint,2,opt,name=restarts"`

	// restartedLeader is the UID of the leader pod that was last deleted to recreate the group, or is about to be, unless
	// the group is failed. A pod is never the reason for two restarts.
	// +optional
	RestartedLeader types.UID `json:"restartedLeader,omitempty" protobuf:"bytes,3,opt,name=restartedLeader,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// lastRestartTime is when the group was last recreated, whatever the reason.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty" protobuf:"bytes,4,opt,name=lastRestartTime"`

	// restartsInRow is the number of failures without a time of being ready between them that is as long as groupRestartBackoff.maxSeconds.
	// +optional
	RestartsInRow int32 `json:"restartsInRow,omitempty" protobuf:"varint,5,opt,name=restartsInRow"`

	// restartAt is when the group is recreated if it waits for groupRestartBackoff.
	// +optional
	RestartAt *metav1.Time `json:"restartAt,omitempty" protobuf:"bytes,6,opt,name=restartAt"`

	// readySince is since when all pods of the group are ready. It is kept only while groupRestartBackoff is set and restartsInRow is not 0.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty" protobuf:"bytes,7,opt,name=readySince"`

	// firstCause is why the group was last recreated after a failure: what its first failed pod said. The pod itself is
	// deleted with the group. Its job is the name of the StatefulSet of the pod.
	// +optional
	FirstCause *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty" protobuf:"bytes,8,opt,name=firstCause"`

	// failed means that the group would need one more restart than maxGroupRestarts allows, and is left as it is: its leader is
	// restartedLeader. It ends when the leader is replaced, for example by a restart on request, or when the limit is raised.
	// +optional
	Failed bool `json:"failed,omitempty" protobuf:"varint,9,opt,name=failed"`

	// incomplete means that the workers of the group have not all existed at the same time since its leader was created, and that the group
	// was recreated or has lost a worker since. Until they do, a worker that is deleted is replaced, and is no reason to recreate the group.
	// +optional
	Incomplete bool `json:"incomplete,omitempty" protobuf:"varint,10,opt,name=incomplete"`
}

// RequestedRestart is a restart that users have requested.
type RequestedRestart struct {
	// requestTime is when the last request was accepted.
	RequestTime metav1.MicroTime `json:"requestTime" protobuf:"bytes,1,opt,name=requestTime"`

	// all means that all groups are restarted, and not only the groups in groups.
	// +optional
	All bool `json:"all,omitempty" protobuf:"varint,2,opt,name=all"`

	// groups are the indexes of the groups that are restarted, in ascending order, at most 1000.
	// +optional
	// +listType=set
	Groups []int32 `json:"groups,omitempty" protobuf:"varint,3,rep,name=groups"`

	// leaders are the UIDs of the leader pods that are deleted for it, once the controller has found them. Pods that are created later stay.
	// +optional
	// +listType=set
	Leaders []types.UID `json:"leaders,omitempty" protobuf:"bytes,4,rep,name=leaders,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// found means that leaders is complete.
	// +optional
	Found bool `json:"found,omitempty" protobuf:"varint,5,opt,name=found"`

	// groupsLeft is the number of groups, from index 0 on, whose leader pods are added to leaders later, because a set of
	// very many groups is restarted in parts. Those of higher groups were added. Absent when leaders is complete, and
	// before the first are added.
	// +optional
	GroupsLeft *int32 `json:"groupsLeft,omitempty" protobuf:"varint,6,opt,name=groupsLeft"`
}

// LastAction is an action of a user that changed a set.
type LastAction struct {
	// action is Restart, Rollback, Pause or Resume.
	Action Action `json:"action" protobuf:"bytes,1,opt,name=action,casttype=Action"`

	// user is the name of the user. At most 256 bytes; what is longer was cut.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,2,opt,name=user"`

	// reason is what the user gave as reason. At most 1024 characters.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,3,opt,name=reason"`

	// time is when the action took effect.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty" protobuf:"bytes,4,opt,name=time"`

	// group is the index of the group that was restarted. Absent for the whole set.
	// +optional
	Group *int32 `json:"group,omitempty" protobuf:"varint,5,opt,name=group"`

	// revision is the number of the revision to which the set was rolled back.
	// +optional
	Revision int64 `json:"revision,omitempty" protobuf:"varint,6,opt,name=revision"`
}

// Action is what a user can do with a set.
// +enum
type Action string

const (
	// ActionRestart recreates groups.
	ActionRestart Action = "Restart"
	// ActionRollback returns to a former revision.
	ActionRollback Action = "Rollback"
	// ActionPause pauses the rolling update.
	ActionPause Action = "Pause"
	// ActionResume resumes it.
	ActionResume Action = "Resume"
)
