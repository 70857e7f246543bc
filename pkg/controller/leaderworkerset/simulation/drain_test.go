// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds drains of nodes during which the controller starts again and again.

const (
	ruleDrained = "a drain recreates a group once"
	ruleEvicted = "an evicted worker of a complete group recreates the group"
)

// drainedGroup is the group whose workers are evicted, drainedSize is its size, and drainSteps is how many steps a drain takes at most.
const (
	drainedGroup = 0
	drainedSize  = 4
	drainSteps   = 2_000
)

var drains = simulation.Histories[mutant]{
	Run: runDrain, Faultless: faultless, Number: 200, Long: 2_000, Decisions: "decisions",
	Wanted: []string{"evictions of complete groups", "evictions of groups that are built", "starts of the controller during a drain", "drains with one start of the controller"},
}

func runDrain(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	if m.finish == nil {
		m.finish = plan.Finish
	}
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		e.prepareDrain()
		e.drain()
		e.evictComplete(e.Dice.Percent(50))
	})
	return seen, broken
}

// prepareDrain brings the set to rest: two groups that have been ready for long.
func (e *env) prepareDrain() {
	e.faults = faults{}
	e.skew = 0 // a worker that goes while no controller runs is found by the times of pods and of conditions
	e.EndTrouble()
	e.labelNodes()
	set := e.set()
	next := set.DeepCopy()
	next.Spec.Paused, next.Spec.Replicas, next.Spec.GroupRestartBackoff = nil, ptr.To[int32](2), nil
	next.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](0)
	next.Spec.LeaderWorkerTemplate.GroupSize, next.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](drainedSize), nil
	next.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart
	next.Spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate("good")
	if next.Spec.LeaderWorkerTemplate.LeaderTemplate != nil {
		next.Spec.LeaderWorkerTemplate.LeaderTemplate = ptr.To(podTemplate("good"))
	}
	e.put(set, next, "edits")
	e.wait(5 * time.Minute)
	e.Pass(time.Hour)
	e.rest()
	if leader := e.leader(drainedGroup); leader == nil || !e.rules.ready(leader) {
		e.Fail(ruleIs, "group %d is not ready", drainedGroup)
	}
}

// drain evicts a worker of a group, and then workers that have started while the next group is built. The controller starts again at each
// step, or at one of them.
func (e *env) drain() {
	before := e.recreations()
	first := e.evict(0, "complete groups")
	e.oneByOne = true
	at, evictions := -1, 1+e.Dice.IntN(3)
	if e.Dice.Percent(50) {
		e.Seen["drains with one start of the controller"]++
		at = e.Dice.IntN(60)
	}
	for step := 0; !e.rebuilt(first); step++ {
		if step == drainSteps {
			e.Fail(ruleRest, "the group is not complete after %d steps of a drain", step)
		}
		if at < 0 || step == at {
			e.Note("the controller ends")
			e.Seen["starts of the controller during a drain"]++
			e.process.sender.Dead = true
		}
		e.drainStep()
		if evictions > 0 && e.evictStarted(first) {
			evictions--
		}
	}
	if e.oneByOne = false; e.Dice.Percent(30) {
		e.evictComplete(false) // before the status says that the group is complete, or soon after
		before++
	}
	e.wait(2 * time.Minute)
	if n := e.recreations() - before; n != 1 {
		e.Fail(ruleDrained, "group %d was recreated %d times", drainedGroup, n)
	}
}

// drainStep lets one component do something.
func (e *env) drainStep() {
	e.Pass(time.Second + time.Duration(e.Dice.IntN(2_000))*time.Millisecond)
	switch e.Dice.IntN(5) {
	case 0:
		e.ShowAll(e.process.caches())
	case 1:
		for _, sts := range slices.Clone(e.statefulSets.Objects) {
			e.run(sts)
		}
	case 2:
		e.liveSome()
	case 3:
		e.collectGarbage()
	default:
		e.sync()
	}
}

// evictComplete evicts a worker of a complete group. The controller starts again before it has looked at that, and another worker may be
// gone by then.
func (e *env) evictComplete(more bool) {
	before := e.recreations()
	e.process.sender.Dead = true
	if leader := e.evict(1, "complete groups"); more {
		e.vanish(e.podsOf(e.workers(leader))[2])
	}
	e.sync()
	e.wait(2 * time.Minute)
	if n := e.recreations() - before; n != 1 {
		e.Fail(ruleEvicted, "group %d was recreated %d times", drainedGroup, n)
	}
}

// evict evicts a worker of the group, and returns the leader of the group.
func (e *env) evict(worker int, of string) (leader *corev1.Pod) {
	leader = e.leader(drainedGroup)
	pod := e.podsOf(e.workers(leader))[worker]
	e.Note("pod %s (%s) is evicted", pod.Name, pod.UID)
	e.Seen["evictions of "+of]++
	e.deletePod(pod, false)
	return leader
}

// evictStarted evicts the first worker of the next group that has started, unless all workers of the group exist. It reports whether there
// was one.
func (e *env) evictStarted(first *corev1.Pod) bool {
	own, _ := e.nextWorkers(first)
	if len(own) >= drainedSize-1 {
		return false
	}
	for i, pod := range own {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			e.evict(i, "groups that are built")
			return true
		}
	}
	return false
}

// nextWorkers returns the workers of the group whose leader is not the first one, and whether there is such a group.
func (e *env) nextWorkers(first *corev1.Pod) (own []*corev1.Pod, exists bool) {
	leader := e.leader(drainedGroup)
	if leader == nil || leader.UID == first.UID || e.workers(leader) == nil {
		return nil, false
	}
	return e.podsOf(e.workers(leader)), true
}

// rebuilt returns whether the group has another leader than the first one, and all workers.
func (e *env) rebuilt(first *corev1.Pod) bool {
	own, _ := e.nextWorkers(first)
	return len(own) == drainedSize-1 && !slices.ContainsFunc(own, func(pod *corev1.Pod) bool { return !healthy(pod) })
}

// recreations returns how often the group was recreated.
func (e *env) recreations() int {
	for _, g := range e.set().Status.Groups {
		if g.Index == drainedGroup {
			return int(g.Restarts)
		}
	}
	return 0
}

// TestDrains runs drains.
func TestDrains(t *testing.T) { drains.Test(t) }

// TestDrainsShowDefects makes sure that they can fail.
func TestDrainsShowDefects(t *testing.T) {
	drains.ShowDefects(t, 200, map[string]simulation.Defect[mutant]{
		"groups that are built taken for complete ones":   {Mutant: deciding(forgetBuilding, nil), Rules: []string{ruleDrained}},
		"groups that stay incomplete":                     {Mutant: deciding(nil, buildForever), Rules: []string{ruleEvicted}},
		"what is not known taken for incomplete":          {Mutant: deciding(doubtful, nil), Rules: []string{ruleDrained, ruleEvicted}},
		"times of deletions that are not compared":        {Mutant: deciding(timeless, nil), Rules: []string{ruleEvicted}},
		"workers that exist taken for those that existed": {Mutant: deciding(undeleted, nil), Rules: []string{ruleDrained}},
	})
}

// forgetBuilding does not see that groups are being built.
func forgetBuilding(o *plan.Observed) {
	for i := range o.Set.Status.Groups {
		o.Set.Status.Groups[i].Incomplete = false
	}
}

// buildForever does not store that groups are complete.
func buildForever(_ plan.Observed, p *plan.Plan) {
	if p.Status == nil {
		return
	}
	p.Status = p.Status.DeepCopy()
	for i := range p.Status.Groups {
		p.Status.Groups[i].Incomplete = true
	}
}

// doubtful takes groups for incomplete until it has seen all of their workers.
func doubtful(o *plan.Observed) {
	for i := range o.Workers {
		o.Workers[i].NeverComplete = !o.Workers[i].Complete
	}
}

// timeless does not know when pods were deleted.
func timeless(o *plan.Observed) {
	changeDeleting(o, func(pod *plan.Pod) { pod.DeletingSince = metav1.Time{} })
}

// undeleted takes pods for older than any deletion.
func undeleted(o *plan.Observed) {
	changeDeleting(o, func(pod *plan.Pod) { pod.DeletingSince.Time = o.Now.Add(time.Hour) })
}

func changeDeleting(o *plan.Observed, change func(pod *plan.Pod)) {
	for i := range o.Workers {
		for j := range o.Workers[i].Pods {
			if pod := &o.Workers[i].Pods[j]; pod.Deleting {
				change(pod)
			}
		}
	}
}
