// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what lasts longer than random histories let anything last: pods that stop slowly, and JobSets that the server cannot read.

const ruleStops = "a sequence is suspended once its pods have stopped"

// hardships are what only some histories have.
type hardships struct {
	slowPods, unreadableSets bool
	// stopAt is when the pods stop of children that are deleted or suspended.
	stopAt map[types.UID]time.Time
	// hidden is the JobSet that the server cannot read; nil if there is none.
	hidden *jobsetv1alpha2.JobSet
}

func newHardship(lasting hardships, wanted ...string) simulation.Histories[mutant] {
	return simulation.Histories[mutant]{
		Faultless: faultless, Number: 60, Long: 1_000, Decisions: "decisions", Wanted: wanted,
		Run: func(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
			if m.finish == nil {
				m.finish = plan.Finish
			}
			broken = simulation.Guarded(func() {
				e := newEnv(seed, m, trace)
				seen, e.hardships = e.Seen, lasting
				e.stopAt = map[types.UID]time.Time{}
				e.faults.meddling, e.faults.users, e.faults.rivals, e.faults.lives, e.faults.caches, e.faults.sync = 0, 0, 0, 10, 30, 30
				for range 40 + e.Dice.IntN(80) {
					e.hideSome()
					e.suspendSome()
					e.step()
				}
				e.slowPods = false
				e.show()
				e.checkRest(e.stabilize())
			})
			return seen, broken
		},
	}
}

var (
	slowPods       = newHardship(hardships{slowPods: true}, "children that stop slowly")
	unreadableSets = newHardship(hardships{unreadableSets: true}, "children that cannot be read")
)

// stopsSlowly returns whether pods of a child still stop. The Job controller reports them as terminating.
func (e *env) stopsSlowly(child metav1.Object) bool {
	c := view(child)
	if !e.slowPods || c.End != "" || !c.Busy || !c.Suspended && !c.Deleting {
		return false
	}
	if _, found := e.stopAt[c.UID]; !found {
		e.Note("pods of child %s stop slowly", c.Name)
		e.Seen["children that stop slowly"]++
		e.stopAt[c.UID] = e.Now().Add(simulation.OneOf(e.Dice, 5*time.Second, 30*time.Second))
		e.changeChild(child, func(j *batchv1.Job) {
			j.Status.Active, j.Status.StartTime, j.Status.Terminating = 0, nil, ptr.To[int32](1)
		},
			func(*jobsetv1alpha2.JobSet) {})
	}
	if e.Now().Before(e.stopAt[c.UID]) {
		return true
	}
	delete(e.stopAt, c.UID)
	e.changeChild(child, func(j *batchv1.Job) { j.Status.Terminating = nil }, func(*jobsetv1alpha2.JobSet) {})
	return false
}

// checkSuspended checks the rule about the condition Suspended. Kueue starts children, too: pods of a child that the cache did not show as
// busy do not count.
func (r *rules) checkSuspended(busy sets.Set[types.UID], before, after *batchv1alpha1.SequentialJob, known bool) {
	is := func(sj *batchv1alpha1.SequentialJob) bool {
		return meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionSuspended)
	}
	if !known || is(before) || !is(after) {
		return
	}
	for _, pod := range r.pods {
		if pod.sequence == r.uid && r.slowPods && r.lives(pod.child) && !r.unknown[pod.child] && busy.Has(pod.child) {
			r.Fail(ruleStops, "pod %s runs", pod.name)
		}
	}
}

// hides returns whether the server cannot read a child.
func (e *env) hides(child metav1.Object) bool {
	return e.hidden != nil && e.hidden.UID == child.GetUID()
}

// checkBlind checks the rule about children that cannot be read: while one may run, no other child is created, changed or deleted. A request that
// comes late was decided upon before.
func (p *process) checkBlind(child metav1.Object) {
	if p.blind && !p.sender.Deposed {
		p.Fail(simulation.RuleUnreadable, "child %s", child.GetName())
	}
}

// hideSome makes a JobSet that has not ended one that the server cannot read, or lets an administrator repair it.
func (e *env) hideSome() {
	switch {
	case !e.unreadableSets || !e.Dice.Percent(15):
	case e.hidden != nil:
		e.show()
	default:
		i := slices.IndexFunc(e.jobSets.Objects, func(js *jobsetv1alpha2.JobSet) bool {
			return view(js).End == "" && metav1.GetControllerOfNoCopy(js) != nil
		})
		if i < 0 {
			return
		}
		js := e.jobSets.Objects[i]
		e.Note("the server cannot read jobset %s", js.Name)
		e.Seen["children that cannot be read"]++
		e.jobSets.Put(simulation.Placeholder(js))
		e.hidden = js
	}
}

// suspendSome lets a user suspend or resume the sequence.
func (e *env) suspendSome() {
	if sj := e.sequence(); sj != nil && e.Dice.Percent(12) {
		e.act(simulation.OneOf(e.Dice, "suspend", "resume"))
	}
}

// show lets the server read the JobSet again.
func (e *env) show() {
	if e.hidden == nil {
		return
	}
	e.Note("the server can read jobset %s again", e.hidden.Name)
	js := e.hidden.DeepCopy()
	e.hidden = nil
	e.jobSets.Put(js)
}

func TestSlowPods(t *testing.T)       { slowPods.Test(t) }
func TestUnreadableSets(t *testing.T) { unreadableSets.Test(t) }

// TestHardshipsShowDefects finds defects of which 5 and 16 of 400 histories show the first and the second.
func TestHardshipsShowDefects(t *testing.T) {
	slowPods.ShowDefects(t, 600, map[string]simulation.Defect[mutant]{
		"pods that terminate taken for gone": {Mutant: mutant{decide: plan.Decide, hasty: true}, Rules: []string{ruleStops}},
	})
	unreadableSets.ShowDefects(t, 300, map[string]simulation.Defect[mutant]{
		"placeholders that are believed": {Mutant: mutant{decide: plan.Decide, credulous: true}, Rules: []string{simulation.RuleUnreadable, ruleOne, ruleRuns, ruleFinalizer}},
	})
}
