// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Reasons of events that are no reasons of conditions.
const (
	reasonCreatingRevision = "CreatingRevision"
	reasonFailedCreate     = helper.ReasonFailedCreate
	reasonFailedUpdate     = helper.ReasonFailedUpdate
	reasonFailedDelete     = helper.ReasonFailedDelete
	reasonRolloutPaused    = "RolloutPaused"
	reasonAdoptedChild     = reasons.AdoptedChild
	reasonFailedAdopt      = "FailedAdopt"
	reasonQueueIgnored     = reasons.QueueIgnored
)

// Actions of events, and of writes.
const (
	ActionCreate = "Create"
	ActionUpdate = "Update"
	ActionDelete = "Delete"
)

// Finish returns what to store, report and remember about a set, given what was observed and decided, and what became of it.
func Finish(o Observed, p Plan, r Results) Outcome {
	taken := takenSince(o, r)
	next, troubles := p.withTroubles(o, r, taken)
	out := Outcome{
		Status: next, Events: p.Events, RequeueAfter: hostplan.Sooner(p.RequeueAfter, troubles.due), ActsAfter: p.ActsAfter,
		Evaluated: p.Evaluated, Recorded: p.Recorded, TakenSince: taken, TroubledSince: troubles.since,
	}
	out.RequeueAfter = hostplan.Sooner(out.RequeueAfter, looksAtNames(o, r))
	if left := countsMayWait(o, next); left > 0 && len(p.Events) == 0 {
		out.Status, out.CountsWait, out.RequeueAfter = nil, true, hostplan.Sooner(out.RequeueAfter, left)
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
	out.Others = append(out.Others, failures(o, p, r, taken)...)
	if r.IgnoredQueue != "" {
		out.Others = append(out.Others, queueIgnored(r.IgnoredQueue))
	}
	out.Continue = (p.More || r.Interrupted) && (r.Accepted > 0 || out.Status != nil)
	return out
}

// queueIgnored is the event about a queue that no queueing system reads.
func queueIgnored(queue string) Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: reasonQueueIgnored, Action: ActionCreate,
		Note: fmt.Sprintf("the label %s names the queue %s, but the cluster does not serve %s: Kueue is not installed, so that the set runs "+
			"without quota",
			jobsetv1alpha2.QueueNameKey, queue, kueueplan.Group),
	}
}

// actAfter has the next decision made after a time at which a rule acts.
func (p *Plan) actAfter(after time.Duration) {
	p.RequeueAfter, p.ActsAfter = hostplan.Sooner(p.RequeueAfter, after), hostplan.Sooner(p.ActsAfter, after)
}

// notice adds an event, unless there are as many as a plan has writes.
func (p *Plan) notice(e Event) {
	if len(p.Notices) < maxGroupWrites {
		p.Notices = append(p.Notices, e)
	}
}

// revisionCreated reports whether the revision of a plan exists. Without it, the leader StatefulSet is not applied.
func (p *Plan) revisionCreated(r Results) bool {
	return p.CreateRevision != nil && (r.LeaderApplied || r.LeaderError != "" || p.ApplyLeader == nil && r.RevisionError == "" &&
		!r.Interrupted)
}

// failures returns the events of what could not be written.
func failures(o Observed, p Plan, r Results, taken Taken) (out []Event) {
	failed := func(reason, action, related, note string) {
		out = append(out, Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note, Related: related})
	}
	name := o.Set.Name
	switch {
	case o.LeaderTaken && !p.adopts(name):
		failed(reasonFailedCreate, ActionCreate, "", fmt.Sprintf(
			"Failed to create leader statefulset %s: a StatefulSet with this name exists and does not belong to the LeaderWorkerSet", name))
	case r.LeaderError != "" && o.Leader == nil:
		failed(reasonFailedCreate, ActionCreate, "", fmt.Sprintf("Failed to create leader statefulset %s: %s", name, r.LeaderError))
	case r.LeaderError != "":
		failed(reasonFailedUpdate, ActionUpdate, "", fmt.Sprintf("Failed to update leader statefulset %s: %s", name, r.LeaderError))
	}
	if r.ServiceError != "" {
		failed(reasonFailedCreate, ActionCreate, "", "Failed to create headless service for error: "+r.ServiceError)
	}
	namesTaken(o, r, taken, failed)
	for _, pod := range slices.Sorted(maps.Keys(r.WorkerErrors)) {
		failed(reasonFailedCreate, ActionCreate, pod, fmt.Sprintf("Failed to create worker statefulset for leader pod %s: %s", pod,
			r.WorkerErrors[pod]))
	}
	for _, w := range r.Failed {
		failed(reasonsOfFailures[w.Action], w.Action, "", fmt.Sprintf("Failed to %s %s: %s", strings.ToLower(w.Action), w.Object, w.Error))
	}
	return out
}

// namesTaken reports the names that others have.
func namesTaken(o Observed, r Results, taken Taken, failed func(reason, action, related, note string)) {
	for _, service := range r.TakenServices {
		if takenByOthers(o, service, taken.Services[service]) {
			failed(reasonFailedCreate, ActionCreate, "", fmt.Sprintf(
				"Failed to create headless service %s: a Service with this name exists and does not belong to the LeaderWorkerSet", service))
		}
	}
	for _, pod := range r.TakenWorkers {
		if takenByOthers(o, pod, taken.Workers[pod]) {
			failed(reasonFailedCreate, ActionCreate, pod, fmt.Sprintf(
				"Failed to create worker statefulset for leader pod %s: a StatefulSet with this name exists and does not belong to the pod", pod))
		}
	}
}
