// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// This file has how the next status comes about. A step looks at the state and returns the changes that it wants; only fold
// makes them.

// state is what a step looks at.
type state struct {
	Observed
	// owned are the Jobs of the snapshot, classified.
	owned children
	// next is the next status as far as the steps before have made it. A step does not change it.
	next *jobsetv1alpha2.JobSetStatus
}

// step returns what one subject wants of the next status.
type step func(state) changes

// edit changes a part of a status that is no condition.
type edit func(next *jobsetv1alpha2.JobSetStatus)

// changes are what a subject wants of the next status.
type changes struct {
	// conditions are put in place in this order. Each change of a status of one is reported in an event.
	conditions []condition
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
	// nodes asks for the number of nodes, and cause for why a Job failed.
	nodes bool
	cause *FailedJob
	// problems are what keeps the subject from its work, one sentence each.
	problems []string
	// due is when the subject has to be looked at again even if nothing happens; 0 for never.
	due time.Duration
}

// wants returns changes of conditions alone.
func wants(conditions ...condition) changes { return changes{conditions: conditions} }

// and returns changes of conditions, with the edits and the events of others.
func (c changes) and(others changes) changes {
	c.conditions = slices.Concat(c.conditions, others.conditions)
	c.edits = slices.Concat(c.edits, others.edits)
	c.first, c.events = slices.Concat(c.first, others.first), slices.Concat(c.events, others.events)
	return c
}

// statusBuilder makes the next status, with the events that report its changes.
type statusBuilder struct {
	state
	events []Event
	// premature means that the conditions are not about the present spec yet.
	premature bool
	// asks are what the status depends on and the snapshot does not have.
	asks Asks
	// problems are what keeps subjects from their work.
	problems []string
}

func newStatus(o Observed, owned children) *statusBuilder {
	return &statusBuilder{state: state{Observed: o, owned: owned, next: o.JobSet.Status.DeepCopy()}}
}

// run takes steps, each of which sees what those before it have changed. It stops after one that commits, and reports whether
// one did.
func (b *statusBuilder) run(steps ...step) bool {
	for _, take := range steps {
		c := take(b.state)
		if b.fold(c); c.commits {
			return true
		}
	}
	return false
}

// fold makes the changes that a subject wants, and returns when it has to be looked at again.
func (b *statusBuilder) fold(c changes) time.Duration {
	for _, wanted := range c.conditions {
		b.put(wanted)
	}
	for _, change := range c.edits {
		change(b.next)
	}
	if len(c.first)+len(c.events) > 0 {
		b.events = slices.Concat(c.first, b.events, c.events)
	}
	b.premature = b.premature || c.premature
	b.asks.Nodes = b.asks.Nodes || c.nodes
	if c.cause != nil {
		b.asks.FirstCause = c.cause
	}
	b.problems = append(b.problems, c.problems...)
	return c.due
}

// result returns the next status, nil if the stored one is right. All conditions of it hold for the present generation of
// the set, and say so. Conditions that an earlier version stored say nothing about generations; that alone is no reason
// to write.
func (b *statusBuilder) result() (*jobsetv1alpha2.JobSetStatus, []Event) {
	generation := b.JobSet.Generation
	outdated := !b.premature && slices.ContainsFunc(b.next.Conditions, func(c metav1.Condition) bool {
		return c.ObservedGeneration > 0 && c.ObservedGeneration < generation
	})
	if !outdated && equality.Semantic.DeepEqual(&b.JobSet.Status, b.next) {
		return nil, b.events
	}
	for i := range b.next.Conditions {
		c := &b.next.Conditions[i]
		c.ObservedGeneration = max(c.ObservedGeneration, generation)
	}
	return b.next, b.events
}
