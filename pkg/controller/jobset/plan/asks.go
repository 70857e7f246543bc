// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// Asks are what a decision depends on and the snapshot does not have. A plan that asks for something holds nothing else:
// the decision is made once more on a snapshot with the answers. An answer may be that something could not be obtained,
// so that a decision never asks twice.
type Asks struct {
	// ShutOut asks for Observed.ShutOut, InPlace for Observed.InPlace, Restored for Observed.Restored, and Nodes for Observed.Nodes.
	ShutOut, InPlace, Restored, Nodes bool
	// FirstInPlace asks for Observed.FailedInPlace.
	FirstInPlace *inplace.Pod
	// FirstCause asks for Observed.Cause.
	FirstCause *FailedJob
	// Unplaced asks for Observed.Placed, Unlocated for Observed.Located, and Stuck for Observed.Moving.
	Unplaced  []domains.Unplaced
	Unlocated []domains.Unlocated
	Stuck     []domains.Stuck
}

// Questions names what a plan asks for.
func (p Plan) Questions() (out []string) {
	a := p.Asks
	for _, question := range []struct {
		name string
		put  bool
	}{
		{"Jobs without room", a.ShutOut}, {"pods that restart in place", a.InPlace}, {"restored store", a.Restored}, {"number of nodes", a.Nodes},
		{"failure in place", a.FirstInPlace != nil}, {"first cause", a.FirstCause != nil}, {"domains", len(a.Unplaced) > 0},
		{"domains of the scheduler", len(a.Unlocated) > 0}, {"moves", len(a.Stuck) > 0},
	} {
		if question.put {
			out = append(out, question.name)
		}
	}
	return out
}

// with returns these questions and more of them.
func (a Asks) with(more Asks) Asks {
	a.ShutOut, a.InPlace = a.ShutOut || more.ShutOut, a.InPlace || more.InPlace
	a.Restored, a.Nodes = a.Restored || more.Restored, a.Nodes || more.Nodes
	a.FirstInPlace, a.FirstCause = cmp.Or(a.FirstInPlace, more.FirstInPlace), cmp.Or(a.FirstCause, more.FirstCause)
	a.Unplaced, a.Unlocated, a.Stuck = both(a.Unplaced, more.Unplaced), both(a.Unlocated, more.Unlocated), both(a.Stuck, more.Stuck)
	return a
}

// Empty returns whether nothing is asked for.
func (a *Asks) Empty() bool { return len(Plan{Asks: *a}.Questions()) == 0 }

// asksFirst returns what is asked for before Jobs are looked at one by one, so that another round costs little.
func asksFirst(o Observed) (all Asks) {
	for _, ask := range []func(Observed) Asks{askShutOut, askInPlace, askRestored} {
		all = all.with(ask(o))
	}
	return all
}
