// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds drains of nodes on which groups are built for the first time. The controller sees the first eviction, and starts again and
// again from then on.

const ruleFirstBuilt = "a drain does not recreate a group that is built for the first time"

var firstBuilds = simulation.Histories[mutant]{
	Run: runFirstBuild, Faultless: faultless, Number: 200, Long: 2_000, Decisions: "decisions",
	Wanted: []string{
		"evictions of complete groups", "evictions of groups that are built", "starts of the controller during a drain", "drains with one start of the controller",
	},
}

func runFirstBuild(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	if m.finish == nil {
		m.finish = plan.Finish
	}
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		e.prepareDrain()
		e.scale(0)
		e.wait(2 * time.Minute)
		if groups := e.set().Status.Groups; len(groups) > 0 {
			e.Fail(ruleIs, "entries of groups are left: %+v", groups)
		}
		e.drainFirstBuild()
		e.evictComplete(e.Dice.Percent(50))
	})
	return seen, broken
}

// scale changes the number of groups.
func (e *env) scale(groups int32) {
	set := e.set()
	next := set.DeepCopy()
	next.Spec.Replicas = ptr.To(groups)
	e.put(set, next, "edits")
}

// drainFirstBuild evicts workers that have started while their group is built for the first time. Once the controller has seen the first
// eviction, it starts again at each step, or at one of them.
func (e *env) drainFirstBuild() {
	e.oneByOne = true
	e.scale(2)
	none := &corev1.Pod{} // there is no group before this one
	at, evictions := -1, e.Dice.IntN(3)
	if e.Dice.Percent(50) {
		e.Seen["drains with one start of the controller"]++
		at = e.Dice.IntN(60)
	}
	evicted := -1
	for step := 0; !e.rebuilt(none); step++ {
		if step == drainSteps {
			e.Fail(ruleRest, "the group is not complete after %d steps of a drain", step)
		}
		switch {
		case evicted >= 0 && (at < 0 || step-evicted == at):
			e.Note("the controller ends")
			e.Seen["starts of the controller during a drain"]++
			e.process.sender.Dead = true
		case evicted < 0 && e.evictStarted(none):
			evicted = step
			e.ShowAll(e.process.caches())
			for range 5 {
				e.Pass(time.Second)
				e.sync()
			}
		}
		e.drainStep()
		if evicted >= 0 && evictions > 0 && e.evictStarted(none) {
			evictions--
		}
	}
	want := 0
	if e.oneByOne = false; e.Dice.Percent(30) {
		e.evictComplete(false) // before the status says that the group is complete, or soon after
		want++
	}
	e.wait(2 * time.Minute)
	if n := e.recreations(); evicted >= 0 && n != want {
		e.Fail(ruleFirstBuilt, "group %d was recreated %d times", drainedGroup, n)
	}
}

// TestFirstBuilds runs drains while groups are built for the first time.
func TestFirstBuilds(t *testing.T) { firstBuilds.Test(t) }

// TestFirstBuildsShowDefects makes sure that they can fail.
func TestFirstBuildsShowDefects(t *testing.T) {
	firstBuilds.ShowDefects(t, 200, map[string]simulation.Defect[mutant]{
		"evictions that are not noted":                   {Mutant: deciding(nil, noteNoFirstBuild), Rules: []string{ruleFirstBuilt}},
		"groups that are built taken for complete ones":  {Mutant: deciding(forgetBuilding, nil), Rules: []string{ruleFirstBuilt}},
		"groups that stay incomplete":                    {Mutant: deciding(nil, buildForever), Rules: []string{ruleEvicted}},
		"what is not known taken for incomplete":         {Mutant: deciding(doubtful, nil), Rules: []string{ruleFirstBuilt, ruleEvicted}},
		"all new groups taken for groups that are built": {Mutant: deciding(nil, noteAllGroups), Rules: []string{ruleEvicted}},
	})
}

// noteNoFirstBuild stores nothing about groups that were never recreated.
func noteNoFirstBuild(_ plan.Observed, p *plan.Plan) {
	if p.Status != nil {
		p.Status = p.Status.DeepCopy()
		p.Status.Groups = slices.DeleteFunc(p.Status.Groups, func(e leaderworkersetv1.GroupStatus) bool { return e.Incomplete && e.Restarts == 0 })
	}
}

// noteAllGroups stores of each group without an entry that it is being built.
func noteAllGroups(o plan.Observed, p *plan.Plan) {
	if p.Status == nil {
		return
	}
	p.Status = p.Status.DeepCopy()
	for i := range o.Leaders {
		index := int32(o.Leaders[i].Index)
		if !slices.ContainsFunc(p.Status.Groups, func(e leaderworkersetv1.GroupStatus) bool { return e.Index == index }) {
			p.Status.Groups = append(p.Status.Groups, leaderworkersetv1.GroupStatus{Index: index, Incomplete: true})
		}
	}
}
