// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of events that are no reasons of conditions.
const (
	reasonCreatingRevision = "CreatingRevision"
	reasonFailedCreate     = "FailedCreate"
	reasonFailedUpdate     = "FailedUpdate"
	reasonRolloutPaused    = "RolloutPaused"
	reasonAdoptedChild     = "AdoptedChild"
	reasonFailedAdopt      = "FailedAdopt"
)

// Actions of events.
const (
	actionCreate = "Create"
	actionUpdate = "Update"
	actionDelete = "Delete"
)

// Finish returns what to store, report and remember about a set, given what was observed and decided, and what became of it.
func Finish(o Observed, p Plan, r Results) Outcome {
	out := Outcome{Status: p.Status, Events: p.Events, RequeueAfter: p.RequeueAfter, Judged: p.Judged}
	if left := countsMayWait(o, p.Status); left > 0 && len(p.Events) == 0 {
		out.Status, out.CountsWait, out.RequeueAfter = nil, true, sooner(out.RequeueAfter, left)
	}
	out.Others = append(out.Others, p.Notices...)
	if p.revisionCreated(r) {
		out.Others = append(out.Others, p.RevisionEvent)
	}
	if r.LeaderApplied {
		out.Others = append(out.Others, p.LeaderEvents...)
	}
	for _, i := range r.DeletedLeaders {
		if e := p.DeleteLeaders[i].Event; e != nil {
			out.Others = append(out.Others, *e)
		}
	}
	for _, i := range r.CreatedWorkers {
		out.Others = append(out.Others, p.CreateWorkers[i].Event)
	}
	out.Others = append(out.Others, p.adoptions(r)...)
	out.Others = append(out.Others, failures(o, p, r)...)
	out.Continue = (p.More || r.Interrupted) && (r.Accepted > 0 || out.Status != nil)
	return out
}

// notice adds an event, unless there are as many as a plan has writes.
func (p *Plan) notice(e Event) {
	if len(p.Notices) < maxGroupWrites {
		p.Notices = append(p.Notices, e)
	}
}

// revisionCreated reports whether the revision of a plan exists. Without it, the leader StatefulSet is not applied.
func (p *Plan) revisionCreated(r Results) bool {
	return p.CreateRevision != nil && (r.LeaderApplied || r.LeaderError != "" || p.ApplyLeader == nil && r.Error == "" && !r.Interrupted)
}

// takenAfter is how long what belonged to a leader pod, or to a set, that is gone may have its name.
const takenAfter = 15 * time.Second

// takenByOthers returns whether the name of a child of the set, or of a leader pod with that name, is taken by somebody else, and not by what is about to go.
func takenByOthers(o Observed, name string) bool {
	since := o.Set.CreationTimestamp
	for i := range o.Leaders {
		if o.Leaders[i].Name == name {
			since = o.Leaders[i].Created
		}
	}
	return o.Now.Sub(since.Time) >= takenAfter
}

// failures returns the events of what could not be written.
func failures(o Observed, p Plan, r Results) (out []Event) {
	failed := func(reason, action, related, note string) {
		out = append(out, Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note, Related: related})
	}
	name := o.Set.Name
	switch taken := o.LeaderTaken && !p.adopts(name); {
	case taken:
		failed(reasonFailedCreate, actionCreate, "", fmt.Sprintf("Failed to create leader statefulset %s: a StatefulSet with this name exists and does not belong to the LeaderWorkerSet", name))
	case r.LeaderError != "" && o.Leader == nil:
		failed(reasonFailedCreate, actionCreate, "", fmt.Sprintf("Failed to create leader statefulset %s: %s", name, r.LeaderError))
	case r.LeaderError != "":
		failed(reasonFailedUpdate, actionUpdate, "", fmt.Sprintf("Failed to update leader statefulset %s: %s", name, r.LeaderError))
	}
	if r.ServiceError != "" {
		failed(reasonFailedCreate, actionCreate, "", "Failed to create headless service for error: "+r.ServiceError)
	}
	for _, service := range r.TakenServices {
		if takenByOthers(o, service) {
			failed(reasonFailedCreate, actionCreate, "", fmt.Sprintf("Failed to create headless service %s: a Service with this name exists and does not belong to the LeaderWorkerSet", service))
		}
	}
	for _, pod := range r.TakenWorkers {
		if takenByOthers(o, pod) {
			failed(reasonFailedCreate, actionCreate, pod, fmt.Sprintf("Failed to create worker statefulset for leader pod %s: a StatefulSet with this name exists and does not belong to the pod", pod))
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(r.WorkerErrors)) {
		failed(reasonFailedCreate, actionCreate, pod, fmt.Sprintf("Failed to create worker statefulset for leader pod %s: %s", pod, r.WorkerErrors[pod]))
	}
	return out
}
