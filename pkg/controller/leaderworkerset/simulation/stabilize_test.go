// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const (
	ruleRest     = "every history comes to rest"
	ruleIs       = "a set at rest is as its spec says"
	ruleWake     = "a set at rest causes no write"
	ruleRestarts = "no restart is lost"
)

// maxRounds is how often everybody may get a turn until all is at rest.
const maxRounds = 400

// stabilize lets everything come to rest: nothing fails any more, every component gets a turn in every round, and no
// user interferes.
func (e *env) stabilize() {
	e.Note("from here on nothing fails")
	e.faults = faults{restarts: e.faults.restarts}
	e.EndTrouble()
	e.rival = nil
	clear(e.denials)
	if e.outage {
		e.failServer()
	}
	e.labelNodes()
	if set := e.set(); set == nil && e.Dice.Percent(50) {
		e.createSet()
	} else if set != nil && helper.Paused(set) && e.Dice.Percent(70) {
		next := set.DeepCopy()
		next.Spec.Paused = nil
		e.put(set, next, "edits")
	}
	if set := e.set(); set != nil && e.lostInUse {
		e.repair(set)
	}
	if set := e.set(); set != nil && e.Dice.Percent(10) {
		e.loseCurrentRevision(set)
	}
	begin := e.Now()
	round := func() bool { return e.round() || e.awaitReports(begin) }
	if !e.Stabilize(maxRounds, round, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// round gives everybody a turn. It returns whether anybody used it.
func (e *env) round() bool {
	busy := false
	for e.DeliverLate() {
		busy = true
	}
	busy = e.ShowAll(e.process.caches()) || busy
	busy = e.sync() || busy
	for range clusterRounds {
		if !e.clusterRound() {
			break
		}
		busy = true
	}
	return busy
}

// clusterRounds is how many turns everybody else has for each one of the controller: it takes its time.
const clusterRounds = 3

// clusterRound gives everybody but the controller a turn. It returns whether anybody used it.
func (e *env) clusterRound() (busy bool) {
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		busy = e.run(sts) || busy
	}
	for _, pod := range slices.Clone(e.pods.Objects) {
		busy = e.live(pod) || busy
	}
	return e.collectGarbage() || busy
}

// checkRest checks that a set at rest is as its spec says.
func (e *env) checkRest() {
	e.process.worker.Add(name)
	if before := e.writes; !e.careless {
		e.sync()
		if e.writes != before {
			e.Fail(ruleWake, "a sync makes %d", e.writes-before)
		}
	}
	set := e.set()
	if set == nil {
		e.Seen["at rest: gone"]++
		if e.orphaned || e.Seen["children that lost their owner"]+e.Seen["names that others took"] > 0 {
			return // what is left has no owner, or another one
		}
		if n := len(e.statefulSets.Objects) + len(e.pods.Objects) + len(e.services.Objects) + len(e.revisions.Objects) + len(e.podGroups.Objects); n > 0 {
			e.Fail(ruleIs, "it is gone, and %d children are left", n)
		}
		return
	}
	sts := e.leaders()
	if sts == nil {
		e.Fail(ruleIs, "it has no statefulset")
	}
	e.checkStatus(set)
	e.checkRestarts(set)
	e.rules.checkStruck()
	e.checkRevisionsAdopted()
	n, replicas := int(*sts.Spec.Replicas), int(helper.Replicas(set))
	paused := helper.Paused(set)
	if n < replicas || n > replicas+int(helper.MaxSurge(set)) && !paused {
		e.Fail(ruleIs, "it has %d groups", n)
	}
	working := true
	for i := range n {
		working = e.checkGroup(set, i, sts.Labels[leaderworkersetv1.RevisionKey]) && working
	}
	if len(e.podsOf(sts)) != n {
		e.Fail(ruleIs, "it has %d leader pods for %d groups", len(e.podsOf(sts)), n)
	}
	e.checkServices(set, n)
	e.checkGangs(n)
	if sts.Spec.ServiceName != name {
		e.Fail(ruleIs, "its statefulset has the service %q", sts.Spec.ServiceName)
	}
	available := meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
	switch good := imageOf(set) != "bad"; {
	case paused:
		e.Seen["at rest: paused"]++
	case available && helper.Partition(set) == 0 && n != replicas:
		e.Fail(ruleIs, "it is available, and has %d groups", n)
	case available:
		e.Seen["at rest: available"]++
	case good && working:
		e.Fail(ruleIs, "it is not available: %s", describeStatus(&set.Status))
	default:
		e.Seen["at rest: broken"]++
	}
}

// imageOf returns bad if pods of the set never become ready.
func imageOf(set *leaderworkersetv1.LeaderWorkerSet) string {
	pod := &corev1.Pod{Spec: set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec}
	if broken(pod) {
		return "bad"
	}
	return ""
}

func sizeOf(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(pod.Annotations[leaderworkersetv1.SizeAnnotationKey])
	return n
}

// checkGroup checks a group. It returns whether the group works, or would if it was of the current revision.
func (e *env) checkGroup(set *leaderworkersetv1.LeaderWorkerSet, i int, key string) bool {
	leader := e.leader(i)
	switch {
	case leader == nil:
		e.Fail(ruleIs, "group %d has no leader", i)
	case i >= int(helper.Partition(set)) && leader.Labels[leaderworkersetv1.RevisionKey] != key && imageOf(set) != "bad" && !helper.Paused(set):
		e.Fail(ruleIs, "group %d is of an old revision", i)
	case broken(leader):
		return false
	}
	if sizeOf(leader) == 1 {
		return true
	}
	workers := e.workers(leader)
	if workers == nil {
		e.Fail(ruleIs, "group %d has no workers", i)
	}
	own := e.podsOf(workers)
	if len(own) != sizeOf(leader)-1 || len(own) != int(*workers.Spec.Replicas) {
		e.Fail(ruleIs, "group %d has %d workers", i, len(own))
	}
	for _, pod := range own {
		if pod.Labels[leaderworkersetv1.RevisionKey] != leader.Labels[leaderworkersetv1.RevisionKey] {
			e.Fail(ruleMixed, "pod %s and its leader", pod.Name)
		}
		if broken(pod) {
			return false
		}
	}
	return true
}

func (e *env) checkServices(set *leaderworkersetv1.LeaderWorkerSet, n int) {
	if !helper.UniquePerReplica(set.Spec.NetworkConfig) {
		if _, found := e.services.Get(name); !found {
			e.Fail(ruleIs, "it has no service")
		}
		return
	}
	for i := range n {
		if _, found := e.services.Get(helper.LeaderPodName(name, i)); !found {
			e.Fail(ruleIs, "group %d has no service", i)
		}
	}
}

// checkGangs checks that each group is a gang, and nothing else is.
func (e *env) checkGangs(n int) {
	if e.gang == "" {
		return
	}
	for i := range n {
		leader := e.leader(i)
		if group, found := e.podGroups.Get(podGroupOf(leader)); !found || !metav1.IsControlledBy(group, leader) {
			e.Fail(ruleIs, "group %d has no podgroup", i)
		}
	}
	if len(e.podGroups.Objects) != n {
		e.Fail(ruleIs, "there are %d podgroups for %d groups", len(e.podGroups.Objects), n)
	}
}

func (e *env) checkStatus(set *leaderworkersetv1.LeaderWorkerSet) {
	s := &set.Status
	ready := int32(0)
	for i := range int(*e.leaders().Spec.Replicas) {
		if leader := e.leader(i); leader != nil && e.rules.ready(leader) {
			ready++
		}
	}
	switch {
	case s.ObservedGeneration != set.Generation:
		e.Fail(ruleIs, "generation %d is observed of %d", s.ObservedGeneration, set.Generation)
	case s.Restart != nil && ready == *e.leaders().Spec.Replicas:
		e.Fail(ruleRestarts, "a requested restart has not ended: %s", describeStatus(s))
	case s.ReadyReplicas != ready || s.Replicas != *e.leaders().Spec.Replicas:
		e.Fail(ruleIs, "%d groups are ready: %s", ready, describeStatus(s))
	case e.troubled():
		e.Fail(ruleIs, "it says that children cannot be created: %v", s.Conditions)
	}
}

// checkRestarts checks that all groups were recreated that had to be.
func (e *env) checkRestarts(set *leaderworkersetv1.LeaderWorkerSet) {
	exhausted := map[int32]bool{}
	for _, g := range set.Status.Groups {
		exhausted[g.Index] = g.Failed
	}
	recreates := set.Spec.LeaderWorkerTemplate.RestartPolicy != leaderworkersetv1.RestartPolicyNone
	for i := range int(*e.leaders().Spec.Replicas) {
		leader := e.leader(i)
		if leader == nil {
			continue
		}
		if e.rules.requested[leader.UID] && set.Status.Restart == nil {
			e.Fail(ruleRestarts, "somebody asked to restart pod %s (%s)", leader.Name, leader.UID)
		}
		if exhausted[int32(i)] || !recreates {
			continue
		}
		if loss, lost := e.rules.unseen[leader.UID]; lost && e.workers(leader) != nil && e.workers(leader).UID == loss.workers {
			e.Fail(ruleRestarts, "pod %s was lost while no controller ran, and pod %s (%s) is there", loss.pod, leader.Name, leader.UID)
		}
		// If the StatefulSet of the workers is gone too, all of them are new.
		if loss, lost := e.rules.lost[leader.UID]; lost && e.workers(leader) != nil && e.workers(leader).UID == loss.workers {
			e.Fail(ruleRestarts, "pod %s was lost, and pod %s (%s) is there", loss.pod, leader.Name, leader.UID)
		}
		e.checkFailures(set, leader)
	}
}

// checkFailures checks that no pod of a group has failed that is to be recreated.
func (e *env) checkFailures(set *leaderworkersetv1.LeaderWorkerSet, leader *corev1.Pod) {
	own := []*corev1.Pod{leader}
	if workers := e.workers(leader); workers != nil {
		own = append(own, e.podsOf(workers)...)
	}
	started := len(own) == sizeOf(leader)
	for _, pod := range own {
		started = started && pod.Status.Phase != corev1.PodPending
	}
	afterStart := set.Spec.LeaderWorkerTemplate.RestartPolicy == leaderworkersetv1.RestartPolicyRecreateGroupAfterStart
	for _, pod := range own {
		if len(pod.Status.ContainerStatuses) > 0 && (started || !afterStart) {
			e.Fail(ruleRestarts, "a container of pod %s (%s) has restarted, and its group stays", pod.Name, pod.UID)
		}
	}
}
