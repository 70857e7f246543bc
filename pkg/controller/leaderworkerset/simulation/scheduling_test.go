// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds nodes, the scheduler of gangs, and what keeps pods from being created: outages of the server that completes them.

const (
	// domainKey is the node label of exclusive placement.
	domainKey = "rack"
	// nodes is how many there are. Two of them share a domain.
	nodes = 4
	// refusedFor is how long the StatefulSet controller waits until it tries again to create pods that were refused, unless something changes.
	refusedFor = 17 * time.Minute
)

func nodeName(i int) string { return fmt.Sprint("node-", i) }

func domainOf(node string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(node, "node-"))
	return fmt.Sprint("rack-", n%2)
}

// randomCluster draws the capacity of the cluster.
func (e *env) randomCluster(d simulation.Dice) {
	e.gang = simulation.OneOf(d, plan.GangProvider(""), "", "", plan.GangKubernetes, plan.GangVolcano)
	e.dropping = d.Percent(20)
	for i := range nodes {
		e.unlabeled[nodeName(i)] = d.Percent(15)
	}
}

// start gives a pod a node, unless it belongs to a gang that is not known.
func (e *env) start(pod *corev1.Pod) bool {
	if e.gang != "" {
		if _, found := e.podGroups.Get(podGroupOf(pod)); !found {
			e.Seen["pods that waited for their gang"]++
			return false
		}
	}
	n := e.Dice.IntN(nodes)
	if domain, restricted := pod.Spec.NodeSelector[domainKey]; restricted && domain != domainOf(nodeName(n)) {
		n ^= 1 // of the other domain
	}
	e.changePod(pod, func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodRunning, nodeName(n) })
	return true
}

func podGroupOf(pod *corev1.Pod) string {
	n, _ := strconv.ParseInt(pod.Labels[leaderworkersetv1.GroupIndexLabelKey], 10, 32)
	return helper.PodGroupName(name, int32(n), pod.Labels[leaderworkersetv1.RevisionKey])
}

// labelNodes gives all nodes the label of exclusive placement.
func (e *env) labelNodes() {
	for i := range nodes {
		if e.unlabeled[nodeName(i)] {
			e.unlabeled[nodeName(i)] = false
			e.process.worker.Add(name)
		}
	}
}

// failServer begins or ends an outage of the server of the set: during an outage, no client changes the set, and its pods are refused.
func (e *env) failServer() {
	e.outage = !e.outage
	e.Note("the server of the set is away: %t", e.outage)
	if e.outage {
		e.Seen["outages"]++
		return
	}
	e.servedSince = e.Now()
	e.process.worker.Add(name)
}

// refused returns whether the StatefulSet controller waits because pods were refused, and nothing has changed since.
func (e *env) refused(sts *appsv1.StatefulSet) bool {
	r, found := e.refusals[sts.UID]
	return found && r.state == e.stateOf(sts) && e.Now().Before(r.until)
}

func (e *env) refuse(sts *appsv1.StatefulSet) {
	e.Seen["pods refused"]++
	e.refusals[sts.UID] = refusal{e.stateOf(sts), e.Now().Add(refusedFor)}
}

// refusal is the state in which pods of a StatefulSet were refused, and until when they are not tried again in it.
type refusal struct {
	state string
	until time.Time
}

// stateOf is what makes the StatefulSet controller look when it changes.
func (e *env) stateOf(sts *appsv1.StatefulSet) string {
	state := fmt.Sprint(sts.Generation, sts.Annotations[plan.TouchedKey])
	for _, pod := range e.podsOf(sts) {
		state += " " + pod.ResourceVersion
	}
	return state
}

// rest gives every component turns until none has anything to do at once, so that what happens next happens to a set at rest.
func (e *env) rest() {
	e.Seen["times of rest"]++
	for range maxRounds / 10 {
		if !e.round() {
			return
		}
		e.Pass(100 * time.Millisecond)
	}
}

// leave ends the controller, and lets much happen before the next one starts.
func (e *env) leave() {
	e.Note("no controller runs")
	e.Seen["times without a controller"]++
	e.process.sender.Dead = true
	e.Pass(simulation.OneOf(e.Dice, 3*time.Second, 10*time.Minute))
	for range 2 + e.Dice.IntN(8) {
		switch pod := e.somePod(); {
		case pod != nil && e.Dice.Percent(20):
			e.vanish(pod)
		case e.Dice.Percent(30):
			e.meddle()
		}
		e.clusterRound()
		e.Pass(time.Second)
	}
}
