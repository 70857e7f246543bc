// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// Pause sets spec.paused.
func Pause(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetActionSpec,
	call Call) (*batch.LeaderWorkerSetActionStatus, error) {
	return turn(set, spec, true, call)
}

// Resume clears spec.paused.
func Resume(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetActionSpec,
	call Call) (*batch.LeaderWorkerSetActionStatus, error) {
	return turn(set, spec, false, call)
}

// turn pauses or resumes rolling updates of a set.
func turn(set *leaderworkerset.LeaderWorkerSet, spec *batch.LeaderWorkerSetActionSpec, pause bool,
	call Call) (*batch.LeaderWorkerSetActionStatus, error) {
	asked, done, already := leaderworkerset.ActionResume, "rolling updates were resumed", "the LeaderWorkerSet is not paused; nothing changed"
	if pause {
		asked, done, already = leaderworkerset.ActionPause, "rolling updates were paused",
			"the LeaderWorkerSet is already paused; nothing changed"
	}
	if err := checkMeant(set, spec.Preconditions); err != nil {
		return nil, err
	}
	if paused(set) == pause && repeats(set, asked, spec.Preconditions) {
		return recorded(set, done), nil
	}
	if err := checkGeneration(set, spec.Preconditions); err != nil {
		return nil, err
	}
	if paused(set) == pause {
		return nothing(set, already), nil
	}
	set.Spec.Paused = ptr.To(pause)
	record(set, leaderworkerset.LastAction{Action: asked, Reason: spec.Reason}, call)
	return recorded(set, done), nil
}

// RecordEdit records who paused or resumed a set by changing spec.paused, as the actions do. The changed set has the status of the previous
// one, and may share memory with it.
func RecordEdit(next, prev *leaderworkerset.LeaderWorkerSet, call Call) {
	if call.User == "" || paused(next) == paused(prev) || prev.DeletionTimestamp != nil {
		return
	}
	asked := leaderworkerset.ActionResume
	if paused(next) {
		asked = leaderworkerset.ActionPause
	}
	record(next, leaderworkerset.LastAction{Action: asked}, call) // replaces the pointer, and changes nothing that is shared
}

func paused(set *leaderworkerset.LeaderWorkerSet) bool { return ptr.Deref(set.Spec.Paused, false) }
