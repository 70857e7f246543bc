// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what lasts longer than random histories let anything last: sets that are never ready, pods that stop slowly, and sets that
// the server cannot read.

const (
	ruleKnown = "a group is created at a revision that exists"
	ruleAlone = "a pod that stops slowly delays no other group"
)

// hardships are what lasts at the moment.
type hardships struct {
	// never means that no pod gets ready, and slow is the pod that does not stop when it is deleted.
	never bool
	slow  types.UID
	// oneByOne means that StatefulSets create one pod at a time, as a quota that has little room lets them.
	oneByOne bool
	// hidden is the set while the server cannot read it.
	hidden *leaderworkersetv1.LeaderWorkerSet
}

// hardship returns histories in which something lasts.
func hardship(lasts func(*env), wanted ...string) simulation.Histories[mutant] {
	return simulation.Histories[mutant]{
		Faultless: faultless, Number: 20, Long: 2_000, Decisions: "decisions", Wanted: wanted,
		Run: func(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
			if m.finish == nil {
				m.finish = plan.Finish
			}
			broken = simulation.Guarded(func() {
				e := newEnv(seed, m, trace)
				seen = e.Seen
				e.faults.users, e.faults.meddling, e.faults.outages, e.faults.scaling, e.faults.absences, e.faults.denials, e.faults.rivals = 0, 0, 0, 0, 0, 0, 0
				for range e.Dice.IntN(40) {
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
	neverReady     = hardship((*env).updateInVain, "pods created")
	slowPods       = hardship((*env).stopSlowly, "pods that stop slowly", "groups that others do not wait for")
	unreadableSets = hardship((*env).hide, "passes that know nothing of the set", "kills of the controller")
)

// updateInVain lets users change the template more than ten times while no pod gets ready, and leaders go meanwhile.
func (e *env) updateInVain() {
	e.Note("from here on no pod gets ready")
	e.never = true
	for _, pod := range slices.Clone(e.pods.Objects) {
		e.changePod(pod, func(p *corev1.Pod) { e.setReady(p, false) })
	}
	for range 12 + e.Dice.IntN(6) {
		e.changeImage()
		for range 1 + e.Dice.IntN(3) {
			e.round()
		}
		if leader := e.leader(e.Dice.IntN(2)); leader != nil {
			e.vanish(leader)
		}
		e.rest()
	}
	e.never = false
}

// checkKnown checks the rule about revisions of groups. Nothing else than the controller deletes revisions meanwhile.
func (r *rules) checkKnown(pod *corev1.Pod) {
	key := pod.Labels[leaderworkersetv1.RevisionKey]
	known := func(revision *appsv1.ControllerRevision) bool {
		return revision.Labels[leaderworkersetv1.RevisionKey] == key
	}
	if !slices.ContainsFunc(r.env.revisions.Objects, known) {
		r.Fail(ruleKnown, "pod %s is of revision %s", pod.Name, key)
	}
}

// stopSlowly lets a pod stop slowly while all groups are recreated.
func (e *env) stopSlowly() {
	set := e.set()
	next := set.DeepCopy()
	next.Spec.Paused, next.Spec.Replicas = nil, ptr.To(max(2, *set.Spec.Replicas))
	e.put(set, next, "edits")
	e.EndTrouble()
	e.labelNodes()
	e.faults.failing = 0
	e.wait(time.Minute)
	pod := e.somePod()
	if pod == nil {
		return
	}
	e.Note("pod %s (%s) stops slowly from here on", pod.Name, pod.UID)
	e.Seen["pods that stop slowly"]++
	e.slow = pod.UID
	e.askToRestart(e.set(), &batch.LeaderWorkerSetRestartSpec{Reason: "because"}, "all groups")
	e.wait(3 * time.Minute)
	e.checkAlone(pod)
	e.Note("pod %s stops", pod.Name)
	e.slow = ""
}

// wait gives every component turns for some time.
func (e *env) wait(d time.Duration) {
	for begin := e.Now(); e.Since(begin) < d; e.Pass(10 * time.Second) {
		e.rest()
	}
}

// checkAlone checks that every group is complete but for the group of the pod.
func (e *env) checkAlone(pod *corev1.Pod) {
	stored, found := e.pods.Get(pod.Name)
	if !found || stored.UID != pod.UID || stored.DeletionTimestamp == nil {
		return
	}
	for i := range int(*e.leaders().Spec.Replicas) {
		leader := e.leader(i)
		if pod.Labels[leaderworkersetv1.GroupIndexLabelKey] == strconv.Itoa(i) {
			continue
		}
		if e.Seen["groups that others do not wait for"]++; leader == nil || !e.rules.ready(leader) {
			e.Fail(ruleAlone, "group %d is not ready", i)
		}
	}
}

// hide makes the set one that the server cannot read, while its pods go on.
func (e *env) hide() {
	e.Note("the server cannot read the set from here on")
	set := e.set()
	e.sets.Put(simulation.Placeholder(set))
	e.hidden = set
	for range 20 + e.Dice.IntN(40) {
		e.step()
	}
	e.Note("an administrator repairs the set")
	set, e.hidden = e.hidden.DeepCopy(), nil
	e.sets.Put(set)
}

func TestNeverReady(t *testing.T)     { neverReady.Test(t) }
func TestSlowPods(t *testing.T)       { slowPods.Test(t) }
func TestUnreadableSets(t *testing.T) { unreadableSets.Test(t) }

// TestHardshipsShowDefects finds defects of which 5, 36 and 13 of 100 histories show the first, the second and the third.
func TestHardshipsShowDefects(t *testing.T) {
	neverReady.ShowDefects(t, 100, map[string]simulation.Defect[mutant]{
		"revisions that a StatefulSet may still create deleted": {Mutant: deciding(unneeded, nil), Rules: []string{ruleKnown}},
	})
	slowPods.ShowDefects(t, 60, map[string]simulation.Defect[mutant]{
		"groups that wait for the slowest pod": {Mutant: deciding(nil, waitForSlowest), Rules: []string{ruleAlone}},
	})
	unreadableSets.ShowDefects(t, 30, map[string]simulation.Defect[mutant]{
		"placeholders that are believed": {Mutant: mutant{decide: plan.Decide, credulous: true}, Rules: []string{simulation.RuleUnreadable}},
	})
}

// unneeded takes the revision at which the leader StatefulSet creates pods for none of the set.
func unneeded(o *plan.Observed) { o.LeaderKey = hostplan.Obtained("", true) }

// waitForSlowest creates nothing while any pod of the set is being deleted.
func waitForSlowest(o plan.Observed, p *plan.Plan) {
	deleting := func(pod plan.Pod) bool { return pod.Deleting }
	if slices.ContainsFunc(o.Leaders, deleting) || slices.ContainsFunc(o.Workers, func(w plan.Workers) bool { return slices.ContainsFunc(w.Pods, deleting) }) {
		p.CreateWorkers, p.CreateServices, p.CreatePodGroups = nil, nil, nil
	}
}
