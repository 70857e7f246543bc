// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// This file has how a plan comes about. A step looks at the state and returns what it wants; only fold changes the state.

// state is what a step looks at.
type state struct {
	Observed
	// owned are the Jobs of the snapshot, classified.
	owned children
	// draft is the next status as far as the steps before have made it. A step does not change it.
	draft
	// plan is the rest of the plan as far as the steps before have made it.
	plan Plan
}

// step returns what one subject wants.
type step func(state) changes

// edit changes a part of a status that is no condition.
type edit func(next *jobsetv1alpha2.JobSetStatus)

// changes are what a subject wants.
type changes struct {
	// conditions are put in place in this order. Each change of a status of one is reported in an event.
	conditions []condition
	// troubles become conditions after these.
	troubles []hostplan.Trouble
	// edits are made after that, in this order.
	edits []edit
	// first are reported before all other events, because they tell the cause of these.
	first []Event
	// events are reported after the changes of the conditions.
	events []Event
	// commits means that nothing else may happen until the next status is stored.
	commits bool
	// premature means that the conditions are not about the present spec yet.
	premature bool
	// plan is what else is to be done: children, questions, and when to look again. It has neither status nor events.
	plan Plan
}

// wants returns changes of conditions alone.
func wants(conditions ...condition) changes { return changes{conditions: conditions} }

// reports returns changes by troubles alone. Events report each change of the conditions of a set.
func reports(troubles ...hostplan.Trouble) changes {
	for i := range troubles {
		troubles[i].EachChange = true
	}
	return changes{troubles: troubles}
}

// and returns these changes and others.
func (c changes) and(others changes) changes {
	c.conditions, c.troubles = slices.Concat(c.conditions, others.conditions), slices.Concat(c.troubles, others.troubles)
	c.edits = slices.Concat(c.edits, others.edits)
	c.first, c.events = slices.Concat(c.first, others.first), slices.Concat(c.events, others.events)
	c.commits, c.premature = c.commits || others.commits, c.premature || others.premature
	c.plan = c.plan.with(others.plan)
	return c
}

// run takes steps, each of which sees what those before it have changed. It stops after one that commits, and reports whether
// one did.
func run(s state, steps ...step) (_ state, committed bool) {
	for _, take := range steps {
		c := take(s)
		if s = fold(s, c); c.commits {
			return s, true
		}
	}
	return s, false
}

// fold returns the state with what a subject wants.
func fold(s state, c changes) state {
	s.draft = s.draft.with(s.Now, c)
	s.plan = s.plan.with(c.plan)
	s.plan.RequeueAfter = hostplan.Sooner(s.plan.RequeueAfter, s.due)
	return s
}

// draft is the next status in the making, with the events that report its changes.
type draft struct {
	next   *jobsetv1alpha2.JobSetStatus
	events []Event
	// generation is the generation of the set.
	generation int64
	// due is when to look again at a trouble; 0 for never.
	due time.Duration
	// premature means that the conditions are not about the present spec yet.
	premature bool
}

// newDraft returns the stored status with the counts of the Jobs.
func newDraft(s state) draft {
	stored := s.JobSet.Status
	stored.ReplicatedJobsStatus = nil // there may be very many
	next := stored.DeepCopy()
	next.ReplicatedJobsStatus = asStored(s.owned.counts)
	return draft{next: next, generation: s.JobSet.Generation}
}

// with makes the changes that subjects want.
func (d draft) with(now metav1.Time, all ...changes) draft {
	for _, c := range all {
		for _, wanted := range c.conditions {
			if news := put(d.next, wanted, now); news != nil {
				d.events = append(d.events, *news)
			}
		}
		d = d.report(now, c.troubles)
		for _, change := range c.edits {
			change(d.next)
		}
		if len(c.first)+len(c.events) > 0 {
			d.events = slices.Concat(c.first, d.events, c.events)
		}
		d.premature = d.premature || c.premature
	}
	return d
}

// report makes conditions of troubles.
func (d draft) report(now metav1.Time, troubles []hostplan.Trouble) draft {
	if len(troubles) == 0 {
		return d
	}
	conditions, events, due := hostplan.Fold(d.next.Conditions, d.generation, now, troubles...)
	d.next.Conditions, d.events, d.due = conditions, append(d.events, events...), hostplan.Sooner(d.due, due)
	return d
}

// result returns the next status, nil if the stored one is right. All conditions of it hold for the present generation of
// the set, and say so. Conditions that an earlier version stored say nothing about generations; that alone is no reason
// to write.
func (d draft) result(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSetStatus {
	outdated := !d.premature && slices.ContainsFunc(d.next.Conditions, func(c metav1.Condition) bool {
		return c.ObservedGeneration > 0 && c.ObservedGeneration < js.Generation
	})
	if !outdated && equality.Semantic.DeepEqual(&js.Status, d.next) {
		return nil
	}
	for i := range d.next.Conditions {
		c := &d.next.Conditions[i]
		c.ObservedGeneration = max(c.ObservedGeneration, js.Generation)
	}
	return d.next
}

// with returns the plan with what else a subject wants.
func (p Plan) with(more Plan) Plan {
	p.Asks = p.Asks.with(more.Asks)
	p.AwaitsDomains, p.DespiteQueue = p.AwaitsDomains || more.AwaitsDomains, p.DespiteQueue || more.DespiteQueue
	p.DeleteJobs, p.PatchJobs, p.CreateJobs = both(p.DeleteJobs, more.DeleteJobs), both(p.PatchJobs, more.PatchJobs),
		both(p.CreateJobs, more.CreateJobs)
	p.CreateService, p.CreateClaims = cmp.Or(p.CreateService, more.CreateService), both(p.CreateClaims, more.CreateClaims)
	p.Groups = p.Groups.With(more.Groups)
	p.Backlog, p.Resumed, p.BacklogFull = p.Backlog+more.Backlog, p.Resumed+more.Resumed, p.BacklogFull || more.BacklogFull
	p.DeleteJobSet, p.More = p.DeleteJobSet || more.DeleteJobSet, p.More || more.More
	p.RequeueAfter, p.ActsAfter = hostplan.Sooner(p.RequeueAfter, more.RequeueAfter), hostplan.Sooner(p.ActsAfter, more.ActsAfter)
	p.Problems = both(p.Problems, more.Problems)
	return p
}

// both returns the items of two lists. It may share memory with them.
func both[T any](some, more []T) []T {
	if len(some) == 0 {
		return more
	}
	return append(some, more...)
}
