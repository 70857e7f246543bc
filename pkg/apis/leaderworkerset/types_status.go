// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// LeaderWorkerSetStatus is what the controller last observed of a set.
type LeaderWorkerSetStatus struct {
	// conditions are Available, Progressing and UpdateInProgress, and Failed once a group has used up maxGroupRestarts.
	Conditions []metav1.Condition

	// readyReplicas is the number of groups of which all pods are ready, including the groups of a surge.
	ReadyReplicas int32

	// updatedReplicas is the number of groups of the current revision, including the groups of a surge.
	UpdatedReplicas int32

	// replicas is the number of groups that have been created, including the groups of a surge.
	Replicas int32

	// hpaPodSelector selects the leader pods, as a string, for autoscalers.
	HPAPodSelector string

	// observedGeneration is the generation of the set that the controller last processed.
	ObservedGeneration int64

	// groups holds an entry for each group that was recreated after a failure or on request, at most 1000: those
	// with the fewest restarts are dropped when there are more. Entries of groups above replicas are removed. No field of upstream.
	Groups []GroupStatus

	// restart is the restart that users have requested and that is not complete. No field of upstream.
	Restart *RequestedRestart

	// lastAction is the last action of a user that changed the set. No field of upstream.
	LastAction *LastAction
}

// GroupStatus is what is known of one group.
type GroupStatus struct {
	// index of the group.
	Index int32

	// restarts is how often the group was recreated after a failure. A restart on request does not count.
	Restarts int32

	// restartedLeader is the UID of the leader pod that was last deleted to recreate the group, or is about to be, unless
	// the group is failed. A pod is never the reason for two restarts.
	RestartedLeader types.UID

	// lastRestartTime is when the group was last recreated, whatever the reason.
	LastRestartTime *metav1.Time

	// restartsInRow is the number of failures without a time of being ready between them that is as long as groupRestartBackoff.maxSeconds.
	RestartsInRow int32

	// restartAt is when the group is recreated if it waits for groupRestartBackoff.
	RestartAt *metav1.Time

	// readySince is since when all pods of the group are ready. It is kept only while groupRestartBackoff is set and restartsInRow is not 0.
	ReadySince *metav1.Time

	// firstCause is why the group was last recreated after a failure: what its first failed pod said. The pod itself is
	// deleted with the group. Its job is the name of the StatefulSet of the pod.
	FirstCause *jobset.FailureCause

	// failed means that the group would need one more restart than maxGroupRestarts allows, and is left as it is: its leader is
	// restartedLeader. It ends when the leader is replaced, for example by a restart on request, or when the limit is raised.
	Failed bool

	// incomplete means that the workers of the group have not all existed at the same time since its leader was created, and that the group
	// was recreated or has lost a worker since. Until they do, a worker that is deleted is replaced, and is no reason to recreate the group.
	Incomplete bool
}

// RequestedRestart is a restart that users have requested.
type RequestedRestart struct {
	// requestTime is when the last request was accepted.
	RequestTime metav1.MicroTime

	// all means that all groups are restarted, and not only the groups in groups.
	All bool

	// groups are the indexes of the groups that are restarted, in ascending order, at most 1000.
	Groups []int32

	// leaders are the UIDs of the leader pods that are deleted for it, once the controller has found them. Pods that are created later stay.
	Leaders []types.UID

	// found means that leaders is complete.
	Found bool

	// groupsLeft is the number of groups, from index 0 on, whose leader pods are added to leaders later, because a set of
	// very many groups is restarted in parts. Those of higher groups were added. Absent when leaders is complete, and
	// before the first are added.
	GroupsLeft *int32
}

// LastAction is an action of a user that changed a set.
type LastAction struct {
	// action is Restart, Rollback, Pause or Resume.
	Action Action

	// user is the name of the user. At most 256 bytes; what is longer was cut.
	User string

	// reason is what the user gave as reason. At most 1024 characters.
	Reason string

	// time is when the action took effect.
	Time *metav1.MicroTime

	// group is the index of the group that was restarted. Absent for the whole set.
	Group *int32

	// revision is the number of the revision to which the set was rolled back.
	Revision int64
}

// Action is what a user can do with a set.
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
