// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// The states of a set in one word.
const (
	PhaseUnreadable  = unreadable.Phase // the server cannot read it
	PhaseTerminating = "Terminating"    // it is being deleted
	PhaseFailed      = "Failed"         // a group has used up maxGroupRestarts
	PhasePaused      = "Paused"         // an update is in progress, and a user has paused it
	PhaseUpdating    = "Updating"       // groups are being replaced
	PhaseAvailable   = "Available"      // all groups are ready and updated
	PhaseProgressing = "Progressing"    // groups are being created, or become ready
	PhasePending     = "Pending"        // the controller has not acted on it, or must not
)

// The reasons of events about children that the API refuses, of LeaderWorkerSets and DisaggregatedSets.
const (
	ReasonFailedCreate = reasons.FailedCreate
	ReasonFailedUpdate = "FailedUpdate"
	ReasonFailedDelete = "FailedDelete"
)

// Phase returns the state of a set, with the condition that explains it; nil if none does.
func Phase(set *leaderworkersetv1.LeaderWorkerSet) (string, *metav1.Condition) {
	is := func(conditionType string) *metav1.Condition {
		if c := meta.FindStatusCondition(set.Status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
		return nil
	}
	if unreadable.Is(set) {
		return PhaseUnreadable, &metav1.Condition{Reason: PhaseUnreadable, Message: unreadable.Explain(set)}
	}
	if set.DeletionTimestamp != nil {
		return PhaseTerminating, nil
	}
	if c := is(namespaceuid.Condition); c != nil {
		return PhasePending, c
	}
	if c := is(leaderworkersetv1.ConditionFailed); c != nil {
		return PhaseFailed, c
	}
	if c := is(leaderworkersetv1.ConditionUpdateInProgress); c != nil {
		if set.Spec.Paused != nil && *set.Spec.Paused {
			return PhasePaused, c
		}
		return PhaseUpdating, c
	}
	if c := is(leaderworkersetv1.ConditionAvailable); c != nil {
		return PhaseAvailable, c
	}
	if c := is(leaderworkersetv1.ConditionProgressing); c != nil {
		return PhaseProgressing, c
	}
	return PhasePending, nil
}

// troubles are the conditions about what keeps a set from having all its groups while they are True. The first that is True gives the
// reason.
var troubles = []string{
	namespaceuid.Condition, leaderworkersetv1.ConditionFailed, leaderworkersetv1.ConditionChildCreationFailure,
	leaderworkersetv1.ConditionPodCreationFailure, leaderworkersetv1.ConditionPodsUnschedulable,
}

// Troubles returns the conditions about what keeps a set from having all its groups while they are True. The first that is True is its
// reason.
func Troubles() []string { return slices.Clone(troubles) }

// Trouble returns the condition about what keeps a set from having all its groups; nil if nothing is known to do so.
func Trouble(conditions []metav1.Condition) *metav1.Condition {
	for _, conditionType := range troubles {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Summary is the state of a set, in the words that every view of it shows. It follows from the set alone.
type Summary struct {
	// Phase is the state in one word.
	Phase string
	// Reason is why the set is in the phase, in one word, and Message in a sentence. Both are empty while all groups are ready and updated.
	Reason, Message string
}

// Summarize returns the state of a set.
func Summarize(set *leaderworkersetv1.LeaderWorkerSet) Summary {
	phase, c := Phase(set)
	s := Summary{Phase: phase}
	if phase == PhaseTerminating {
		return s
	}
	if trouble := Trouble(set.Status.Conditions); trouble != nil && phase != PhaseUnreadable {
		c = trouble
	} else if phase == PhaseAvailable {
		c = nil
	}
	if c != nil {
		s.Reason, s.Message = c.Reason, c.Message
	}
	return s
}
