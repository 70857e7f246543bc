// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// lasting is since when there are troubles, and when they are to be looked at again.
type lasting struct {
	since time.Time
	due   time.Duration
}

// blockedChildren returns the children of a set that are refused, or whose names others have.
func blockedChildren(o Observed, p Plan, r Results, taken Taken) []hostplan.BlockedChild {
	blocked := r.Blocked
	conflict := func(kind, name, owner string) {
		blocked = append(blocked, hostplan.BlockedChild{What: kind + " " + name + " could not be created", Refusal: hostplan.Refusal{
			Reason:  reasons.NameConflict,
			Message: fmt.Sprintf("a %s with this name exists and does not belong to the %s; it is created once that one is deleted", kind, owner),
		}})
	}
	if o.LeaderTaken && !p.adopts(o.Set.Name) {
		conflict("StatefulSet", o.Set.Name, "LeaderWorkerSet")
	}
	for _, name := range r.TakenServices {
		if takenByOthers(o, name, taken.Services[name]) {
			conflict("Service", name, "LeaderWorkerSet")
		}
	}
	for _, name := range r.TakenWorkers {
		if takenByOthers(o, name, taken.Workers[name]) {
			conflict("StatefulSet", name, "leader pod of its name")
		}
	}
	return blocked
}

// withTroubles returns the next status with the condition about blocked children, nil if the stored one is right.
func (p *Plan) withTroubles(o Observed, r Results, taken Taken) (*leaderworkersetv1.LeaderWorkerSetStatus, lasting) {
	next, blocked := p.begun(o, r), blockedChildren(o, *p, r, taken)
	l := lasting{since: hostplan.RefusedSince(o.TroubledSince, o.Now.Time, len(blocked) > 0, r.Interrupted)}
	if o.Set.DeletionTimestamp != nil {
		return next, l
	}
	status := &o.Set.Status
	if next != nil {
		status = next
	}
	complete := p.Reading != nil && !p.More && !r.Interrupted
	troubles := hostplan.ChildTroubles(leaderworkersetv1.ConditionChildCreationFailure, status.Conditions, blocked, l.since, complete)
	conditions, _, due := hostplan.Fold(status.Conditions, o.Set.Generation, o.Now, troubles...)
	if l.due = due; equality.Semantic.DeepEqual(conditions, status.Conditions) {
		return next, l
	}
	status = status.DeepCopy()
	if status.Conditions = conditions; equality.Semantic.DeepEqual(&o.Set.Status, status) {
		return nil, l
	}
	return status, l
}

// podsRefused is the trouble of pods that the API refuses to the StatefulSet controller.
func podsRefused(o *Observed) hostplan.Trouble {
	if len(o.RefusedPods) == 0 {
		return hostplan.NoPodsRefused(leaderworkersetv1.ConditionPodCreationFailure)
	}
	head := fmt.Sprintf("pods of %d StatefulSets cannot be created: ", len(o.RefusedPods))
	if len(o.RefusedPods) == 1 {
		head = "pods of 1 StatefulSet cannot be created: "
	}
	return hostplan.Newest(o.RefusedPods).PodsTrouble(leaderworkersetv1.ConditionPodCreationFailure, head, o.PodsRefusedSince, o.Now.Time)
}

// waitForNodes returns the pods for which the scheduler finds no node, and its reason for the first of them by name.
func (o *Observed) waitForNodes() hostplan.Unschedulable {
	out, first := hostplan.Unschedulable{Since: o.UnschedulableSince}, ""
	count := func(list []Pod) {
		for i := range list {
			pod := &list[i]
			if pod.Unschedulable == "" || pod.Deleting {
				continue
			}
			if out.Pods++; out.Pods == 1 || pod.Name < first {
				first, out.Reason = pod.Name, pod.Unschedulable
			}
		}
	}
	count(o.Leaders)
	for i := range o.Workers {
		count(o.Workers[i].Pods)
	}
	return out
}

// Unschedulable returns the number of pods for which the scheduler finds no node.
func (o *Observed) Unschedulable() int { return o.waitForNodes().Pods }

// podsUnschedulable is the trouble of pods that wait for a node.
func podsUnschedulable(o *Observed) hostplan.Trouble {
	return o.waitForNodes().Trouble(leaderworkersetv1.ConditionPodsUnschedulable, "", hostplan.LeaderWorkerSetUnschedulableAfter)
}
