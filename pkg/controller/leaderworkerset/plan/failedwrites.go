// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
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

// begun returns the next status, without what says of requested restarts that they have begun if their leader pods were not deleted, as the
// API refuses it: a time that changed with each try would make each try a write.
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
		next.Groups = notBegun(next.Groups, o.Set.Status.Groups, d.Group)
	}
	if next != p.Status && equality.Semantic.DeepEqual(next, &o.Set.Status) {
		return nil
	}
	return next
}

// notBegun returns entries of groups, of which one says of the last recreation what the stored one says. It is left out if it says nothing
// else.
func notBegun(groups, stored []leaderworkersetv1.GroupStatus, index int32) []leaderworkersetv1.GroupStatus {
	was := byIndex(stored)[index]
	for i := range groups {
		if groups[i].Index == index {
			groups[i].LastRestartTime, groups[i].Incomplete = was.LastRestartTime, was.Incomplete
		}
	}
	empty := leaderworkersetv1.GroupStatus{Index: index}
	return slices.DeleteFunc(groups, func(e leaderworkersetv1.GroupStatus) bool { return equality.Semantic.DeepEqual(e, empty) })
}

// takenAfter is how long what belonged to a leader pod, or to a set, that is gone may have its name.
const takenAfter = 15 * time.Second

// Taken is since when names of Services, and of StatefulSets of workers, are taken, as far as this process has seen.
type Taken struct {
	Services, Workers map[string]time.Time
}

// takenSince returns since when the names are taken that a pass has found taken.
func takenSince(o Observed, r Results) Taken {
	since := func(names []string, before map[string]time.Time) map[string]time.Time {
		var out map[string]time.Time
		for _, name := range names {
			at, known := before[name]
			if !known {
				at = o.Now.Time
			}
			if out == nil {
				out = make(map[string]time.Time, len(names))
			}
			out[name] = at
		}
		return out
	}
	return Taken{since(r.TakenServices, o.TakenSince.Services), since(r.TakenWorkers, o.TakenSince.Workers)}
}

// RetryNamesAfter returns when to look again at a taken name: after as long as the youngest one has been taken so far, within limits. No
// watch shows when an object without our labels is gone.
func RetryNamesAfter(o Observed) time.Duration {
	const soonest = 10 * time.Second
	after := nameFreeAfter
	for _, names := range []map[string]time.Time{o.TakenSince.Services, o.TakenSince.Workers} {
		for _, since := range names {
			after = min(after, o.Now.Sub(since))
		}
	}
	if len(o.TakenSince.Services)+len(o.TakenSince.Workers) == 0 {
		return soonest
	}
	return max(after, soonest)
}

// looksAtNames returns when to look again at the names that a pass has found taken; 0 for never.
func looksAtNames(o Observed, r Results) (after time.Duration) {
	if r.NameTaken {
		after = nameFreeAfter
	}
	if len(r.TakenServices)+len(r.TakenWorkers) > 0 {
		after = hostplan.Sooner(after, RetryNamesAfter(o))
	}
	return after
}

// takenByOthers returns whether the name of a child of the set, or of a leader pod with that name, is taken by another
// object, and not by what is about to go. Without having been seen for long, that is so if the set or the pod is old,
// even if the clock of the server that has dated it is behind.
func takenByOthers(o Observed, name string, since time.Time) bool {
	created, skew := o.Set.CreationTimestamp, time.Duration(0)
	for i := range o.Leaders {
		if o.Leaders[i].Name == name {
			created, skew = o.Leaders[i].Created, clockSkew
		}
	}
	return o.Now.Sub(since) >= takenAfter || o.Now.Sub(created.Time) >= takenAfter+skew
}
