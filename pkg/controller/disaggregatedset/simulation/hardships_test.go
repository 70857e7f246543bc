// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what lasts longer than random histories let anything last: groups that are never ready, groups that stop slowly, and
// LeaderWorkerSets that the server cannot read.

// hardships are what lasts at the moment.
type hardships struct {
	// never means that no group gets ready, and slow that groups take their time to stop.
	never, slow bool
	// stopAt is when the surplus groups of a LeaderWorkerSet stop.
	stopAt map[types.UID]time.Time
	// hidden is the LeaderWorkerSet that the server cannot read; nil if there is none. slice is its slice as far as that is known.
	hidden leaderWorkerSet
	slice  int32
}

// hardship returns histories in which something lasts. Users leave the children alone.
func hardship(lasts func(*env), wanted ...string) simulation.Histories[mutant] {
	return simulation.Histories[mutant]{
		Faultless: faultless, Number: 20, Long: 1_000, Decisions: "decisions", Wanted: wanted,
		Run: func(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
			broken = simulation.Guarded(func() {
				e := newEnv(seed, m, trace)
				seen = e.Seen
				e.faults.meddling, e.faults.others, e.faults.losses = 0, 0, 0
				for range 20 + e.Dice.IntN(60) {
					e.step()
				}
				lasts(e)
				e.stabilize()
				e.checkRest()
			})
			return seen, broken
		},
	}
}

var (
	neverReady         = hardship((*env).updateInVain, "updates in vain", "children created")
	slowGroups         = hardship((*env).stopSlowly, "groups that stop slowly", "steps of updates")
	unreadableChildren = hardship((*env).hide, "children that cannot be read", "passes beside a child that cannot be read")
)

// updateInVain lets users change the template several times while no group gets ready.
func (e *env) updateInVain() {
	e.Note("from here on no group gets ready")
	e.never = true
	for i := range 6 + e.Dice.IntN(4) {
		if ds := e.set(); ds != nil && ds.DeletionTimestamp == nil {
			e.change(func(ds disaggregatedSet) { setImage(ds, string(rune('m'+i))) })
			e.Seen["updates in vain"]++
		}
		for range 5 + e.Dice.IntN(20) {
			e.step()
		}
	}
	e.never = false
}

// stopSlowly lets an update happen while groups stop slowly.
func (e *env) stopSlowly() {
	e.Note("from here on groups stop slowly")
	e.slow, e.stopAt = true, map[types.UID]time.Time{}
	for _, image := range []string{"m", "n"} {
		if ds := e.set(); ds != nil && ds.DeletionTimestamp == nil {
			e.change(func(ds disaggregatedSet) { setImage(ds, image) })
		}
		for range 60 + e.Dice.IntN(60) {
			e.step()
		}
	}
	e.slow = false
}

// stops returns whether surplus groups of a LeaderWorkerSet still stop.
func (e *env) stops(lws leaderWorkerSet) bool {
	if !e.slow || lws.Status.Replicas <= ptr.Deref(lws.Spec.Replicas, 1) {
		return false
	}
	if _, known := e.stopAt[lws.UID]; !known {
		e.Note("groups of %s stop slowly", lws.Name)
		e.Seen["groups that stop slowly"]++
		e.stopAt[lws.UID] = e.Now().Add(simulation.OneOf(e.Dice, 5*time.Second, 30*time.Second))
	}
	if e.Now().Before(e.stopAt[lws.UID]) {
		return true
	}
	delete(e.stopAt, lws.UID)
	return false
}

// hide makes a LeaderWorkerSet one that the server cannot read, when the controller has nothing under way and sees it.
func (e *env) hide() {
	e.EndTrouble()
	for e.DeliverLate() {
	}
	if len(e.children.Objects) == 0 {
		return
	}
	lws := simulation.OneOf(e.Dice, e.children.Objects...)
	if !ownedBySet(lws) || lws.DeletionTimestamp != nil {
		return
	}
	e.Note("the server cannot read %s from here on", lws.Name)
	e.Seen["children that cannot be read"]++
	e.hidden, e.slice = lws, simulation.OneOf(e.Dice, plan.ChildOf(lws).Slice, plan.AnySlice)
	e.children.Put(simulation.Placeholder(lws))
	e.ShowAll(e.process.caches())
	for range 20 + e.Dice.IntN(60) {
		e.step()
	}
	if shown, found := e.children.Store.Get(lws.Name); found && shown.UID == lws.UID {
		e.Note("an administrator repairs %s", lws.Name)
		repaired := lws.DeepCopy()
		repaired.DeletionTimestamp, repaired.Finalizers = shown.DeletionTimestamp, shown.Finalizers
		e.children.Put(repaired)
	}
	e.hidden = nil
}

// hides returns whether the server cannot read a LeaderWorkerSet.
func (e *env) hides(lws leaderWorkerSet) bool { return e.hidden != nil && unreadable.Is(lws) }

// besideHidden checks a write of a LeaderWorkerSet: nothing of a slice is written while one of its LeaderWorkerSets cannot be read.
func (r *rules) besideHidden(lws leaderWorkerSet) {
	if r.hidden == nil || r.set() == nil || r.set().DeletionTimestamp != nil || !metav1.IsControlledBy(r.hidden, r.set()) {
		return
	}
	slice := plan.ChildOf(lws).Slice
	if slice < helper.Slices(r.set()) && (r.slice == plan.AnySlice || r.slice == slice) {
		r.Fail(simulation.RuleUnreadable, "%s is written beside %s", lws.Name, r.hidden.Name)
	}
}

// unreadable returns what a cache shows of LeaderWorkerSets that cannot be read.
func (p *process) unreadable(ds disaggregatedSet) (list []plan.Unreadable) {
	for _, lws := range p.children.Objects {
		if unreadable.Is(lws) && !p.credulous && metav1.IsControlledBy(lws, ds) {
			p.Seen["passes beside a child that cannot be read"]++
			u := plan.Unreadable{Kind: plan.OrphanLeaderWorkerSet, Name: lws.Name, Slice: p.slice, Cause: "damaged"}
			if u.Slice != plan.AnySlice {
				u.Role = plan.ChildOf(lws).Role
			}
			list = append(list, u)
		}
	}
	return list
}

func TestNeverReady(t *testing.T)         { neverReady.Test(t) }
func TestSlowGroups(t *testing.T)         { slowGroups.Test(t) }
func TestUnreadableChildren(t *testing.T) { unreadableChildren.Test(t) }

// TestHardshipsShowDefects finds defects of which 8, 14 and 23 of 40 histories show the first, the second and the third.
func TestHardshipsShowDefects(t *testing.T) {
	neverReady.ShowDefects(t, 60, map[string]simulation.Defect[mutant]{
		"former revisions of which only one is seen": {Mutant: deciding(oneFormer, nil), Rules: []string{ruleAvailable, ruleServices, ruleSurge, ruleInStep}},
	})
	slowGroups.ShowDefects(t, 60, map[string]simulation.Defect[mutant]{
		"groups that stop taken for gone": {Mutant: mutant{decide: plan.Decide, finish: stopped}, Rules: []string{ruleStatus}},
	})
	credulous := faultless
	credulous.credulous = true
	unreadableChildren.ShowDefects(t, 60, map[string]simulation.Defect[mutant]{
		"placeholders that are believed": {Mutant: credulous, Rules: []string{simulation.RuleUnreadable, simulation.RuleOthers}},
	})
}

// oneFormer shows one former revision of each slice, although there may be more of them while none gets ready.
func oneFormer(o *plan.Observed) {
	revision, err := helper.Revision(o.Set)
	if err != nil {
		panic(err)
	}
	former := map[int32]string{}
	o.Children = slices.DeleteFunc(o.Children, func(c plan.Child) bool {
		if c.Revision == revision {
			return false
		}
		if former[c.Slice] == "" {
			former[c.Slice] = c.Revision
		}
		return former[c.Slice] != c.Revision
	})
}

// stopped returns a status in which groups that stop are gone.
func stopped(o plan.Observed, p plan.Plan, results plan.Results) plan.Outcome {
	o.Children = slices.Clone(o.Children)
	for i := range o.Children {
		o.Children[i].Current = min(o.Children[i].Current, o.Children[i].Replicas)
	}
	return plan.Finish(o, p, results)
}
