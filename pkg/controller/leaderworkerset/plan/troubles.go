// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// lasting is since when there are troubles, and when they are to be looked at again.
type lasting struct {
	since time.Time
	due   time.Duration
}

// troublesOf returns the children of a set that are refused, or whose names others have.
func troublesOf(o Observed, p Plan, r Results, taken Taken) []hostplan.Trouble {
	troubles := r.Troubles
	conflict := func(kind, name, owner string) {
		troubles = append(troubles, hostplan.Trouble{What: kind + " " + name + " could not be created", Refusal: hostplan.Refusal{
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
	return troubles
}

// withTroubles returns the next status with the condition about troubles, nil if the stored one is right.
func (p *Plan) withTroubles(o Observed, r Results, taken Taken) (*leaderworkersetv1.LeaderWorkerSetStatus, lasting) {
	next, troubles := p.begun(o, r), troublesOf(o, *p, r, taken)
	l := lasting{since: hostplan.RefusedSince(o.TroubledSince, o.Now.Time, len(troubles) > 0, r.Interrupted)}
	if o.Set.DeletionTimestamp != nil {
		return next, l
	}
	const conditionType = leaderworkersetv1.ConditionChildCreationFailure
	complete := p.Reading != nil && !p.More && !r.Interrupted
	c := hostplan.ChildFailureOf(meta.FindStatusCondition(o.Set.Status.Conditions, conditionType), troubles, l.since, o.Now.Time, complete)
	l.due = c.Due
	if c.Status == "" {
		return next, l
	}
	b := &statusBuilder{o: o, next: o.Set.Status.DeepCopy()}
	if next != nil {
		b.next = next.DeepCopy()
	}
	b.setCondition(conditionType, c.Status, c.Reason, c.Message)
	if equality.Semantic.DeepEqual(&o.Set.Status, b.next) {
		return nil, l
	}
	return b.next, l
}
