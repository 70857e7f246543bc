// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// FailedWrite is a write that has failed.
type FailedWrite struct {
	// Action is ActionCreate, ActionUpdate or ActionDelete.
	Action string
	// Kind is the kind of the object, and Object names both.
	Kind, Object string
	// Error is why.
	Error string
}

// reasonsOfFailures are the reasons of events about writes that have failed, by their action.
var reasonsOfFailures = map[string]string{ActionCreate: reasonFailedCreate, ActionUpdate: reasonFailedUpdate,
	ActionDelete: reasonFailedDelete}

// StatusFailure is the event about a status that could not be stored.
func StatusFailure(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reasonFailedUpdate, Action: ActionUpdate, Note: "Failed to update the status: " +
		err.Error()}
}

// begun returns the next status, without the times of requested restarts whose leader pods were not deleted, as the API
// refuses it: they have not begun, and a time that changed with each try would make each try a write.
func (p *Plan) begun(o Observed, r Results) *leaderworkersetv1.LeaderWorkerSetStatus {
	next := p.Status
	for _, i := range r.KeptLeaders {
		d := &p.DeleteLeaders[i]
		if next == nil || !d.Requested {
			continue
		}
		if next == p.Status {
			next = next.DeepCopy()
		}
		next.Groups = withTimeOf(next.Groups, o.Set.Status.Groups, d.Group)
	}
	if next != p.Status && equality.Semantic.DeepEqual(next, &o.Set.Status) {
		return nil
	}
	return next
}

// withTimeOf returns entries of groups, of which one has the time of the stored ones. It is left out if it says nothing else.
func withTimeOf(groups, stored []leaderworkersetv1.GroupStatus, index int32) []leaderworkersetv1.GroupStatus {
	was := leaderworkersetv1.GroupStatus{}
	if e := byIndex(stored)[index]; e != nil {
		was = *e
	}
	for i := range groups {
		if groups[i].Index == index {
			groups[i].LastRestartTime = was.LastRestartTime
		}
	}
	empty := leaderworkersetv1.GroupStatus{Index: index}
	return slices.DeleteFunc(groups, func(e leaderworkersetv1.GroupStatus) bool { return equality.Semantic.DeepEqual(e, empty) })
}
