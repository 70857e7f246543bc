// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Pods keep off nodes on which an earlier attempt failed, if the set asks for it. Which nodes these are is decided once
// for an attempt, and stored with it before its first Job is created. Each attempt lists all of them, so that none is
// lost when old attempts are dropped.

const (
	// forgetAfter is how long pods may wait for a node before the nodes that they keep off are forgotten: longer than it takes to add a node.
	forgetAfter = 5 * time.Minute
	// shareOfNodes is the share of the nodes of the cluster that pods may keep off: one of so many.
	shareOfNodes = 10
	// avoidedUncounted is how many nodes pods may keep off while the number of nodes is not known.
	avoidedUncounted = 1
	// namedNodes is the number of nodes that an event names.
	namedNodes = 3

	reasonNodesAvoided   = "NodesAvoided"
	reasonNodesForgotten = "AvoidedNodesForgotten"
)

// NodesMatter reports whether a decision on the snapshot depends on the number of nodes. It costs a decision, but only
// for sets that keep off nodes, while an attempt begins.
func NodesMatter(o Observed) bool {
	if !o.KeepAttempts || helper.AvoidTime(o.JobSet, o.AvoidFailedNodes) <= 0 {
		return false
	}
	a, ended := helper.RunningAttempt(&o.JobSet.Status), o.JobSet.Status.Attempts
	if a != nil {
		ended = ended[:len(ended)-1]
	}
	fails := len(o.Causes) > 0 || a != nil && a.FirstCause != nil
	begins := (a == nil || a.CreateTime == nil) && len(avoidable(o, ended)) > 0
	return (fails || begins) && Decide(o).CountNodes
}

// ShutOutMatters reports whether a decision depends on which Jobs find no room because of nodes that their pods keep off.
func ShutOutMatters(o Observed) bool {
	return o.Unschedulable.Pods > 0 && shutsOut(helper.RunningAttempt(&o.JobSet.Status))
}

// AvoidanceDue reports whether it is still to be stored which nodes the pods of the attempt that runs keep off.
func AvoidanceDue(o Observed) bool {
	b := newStatus(o)
	b.avoidNodes()
	return b.avoids
}

// avoidNodes decides which nodes the pods of the attempt that runs keep off. It is late for that once its Jobs exist.
func (b *statusBuilder) avoidNodes() {
	a := helper.RunningAttempt(b.next)
	if !b.o.KeepAttempts || a == nil || a.CreateTime != nil || len(a.AvoidedNodes) > 0 || b.deferred(a).CreateTime != nil {
		return
	}
	failed := avoidable(b.o, b.next.Attempts[:len(b.next.Attempts)-1])
	if len(failed) == 0 {
		return
	}
	b.countNodes = b.o.Nodes == 0
	failed = failed[:min(len(failed), maxAvoided(b.o.Nodes))]
	if len(failed) == 0 {
		return
	}
	a.AvoidedNodes, b.avoids = failed, true
	b.events = append(b.events, Event{Type: corev1.EventTypeNormal, Reason: reasonNodesAvoided, Note: noteAvoided(a)})
}

// maxAvoided returns how many nodes pods may keep off in a cluster of so many; 0 if that is not known.
func maxAvoided(nodes int) int {
	if nodes == 0 {
		return avoidedUncounted
	}
	return min(nodes/shareOfNodes, jobsetv1alpha2.MaxAvoidedNodes)
}

// avoidable returns the nodes on which attempts failed and whose time is not over, those that failed last first.
func avoidable(o Observed, ended []jobsetv1alpha2.Attempt) (out []jobsetv1alpha2.AvoidedNode) {
	d := helper.AvoidTime(o.JobSet, o.AvoidFailedNodes)
	if d <= 0 {
		return nil
	}
	seen := sets.New[string]()
	add := func(node jobsetv1alpha2.AvoidedNode) {
		// The label of a node can have no other name. The Job API would refuse it.
		usable := node.Name != "" && len(validation.IsValidLabelValue(node.Name)) == 0
		if usable && node.Until.After(o.Now.Time) && !seen.Has(node.Name) {
			seen.Insert(node.Name)
			out = append(out, node)
		}
	}
	for i := len(ended) - 1; i >= 0; i-- {
		a := &ended[i]
		if reason := nodeFailure(a.FirstCause); reason != "" {
			add(jobsetv1alpha2.AvoidedNode{Name: a.FirstCause.Node, Attempt: a.Number, Reason: reason,
				Until: metav1.NewTime(failedAt(a, o.Now.Time).Add(d).Truncate(time.Second))})
		}
		if a.ForgetTime != nil {
			break // what was known before is forgotten
		}
		for _, node := range a.AvoidedNodes {
			add(node)
		}
	}
	slices.SortStableFunc(out, func(x, y jobsetv1alpha2.AvoidedNode) int { return cmp.Compare(y.Attempt, x.Attempt) })
	return out
}

// failedAt returns when an attempt failed on a node. The clock of the node may be wrong.
func failedAt(a *jobsetv1alpha2.Attempt, now time.Time) time.Time {
	at := now
	if a.EndTime != nil && a.EndTime.Time.Before(at) {
		at = a.EndTime.Time
	}
	if t := a.FirstCause.Time; t != nil && t.Time.Before(at) {
		at = t.Time
	}
	return at
}

// stillAvoided returns the nodes of the last one of the attempts whose time is not over, for the pods that stay.
func stillAvoided(attempts []jobsetv1alpha2.Attempt, now time.Time) (out []jobsetv1alpha2.AvoidedNode) {
	if len(attempts) == 0 || attempts[len(attempts)-1].ForgetTime != nil {
		return nil
	}
	for _, node := range attempts[len(attempts)-1].AvoidedNodes {
		if node.Until.After(now) {
			out = append(out, node)
		}
	}
	return out
}

// shutsOut reports whether Jobs may find no room because of the nodes that pods of the attempt keep off. Once all Jobs
// were ready, nothing is stopped any more for the sake of a pod that waits.
func shutsOut(a *jobsetv1alpha2.Attempt) bool {
	return a != nil && len(a.AvoidedNodes) > 0 && a.ReadyTime == nil
}

// shutOut returns the Jobs that are created once more because they find no room without nodes that are forgotten.
func shutOut(o Observed, active []*batchv1.Job) []*batchv1.Job {
	if a := helper.RunningAttempt(&o.JobSet.Status); !shutsOut(a) || a.ForgetTime == nil {
		return nil
	}
	return withoutRoom(o, active)
}

func withoutRoom(o Observed, active []*batchv1.Job) (out []*batchv1.Job) {
	for _, job := range active {
		if o.ShutOut.Has(job.UID) && job.Annotations[jobsetv1alpha2.AvoidedNodesKey] != "" && job.DeletionTimestamp == nil {
			out = append(out, job)
		}
	}
	return out
}

// forgetNodes has pods run on the nodes that they keep off, if they have found no room elsewhere for some time. It reports whether it did.
func (b *statusBuilder) forgetNodes(owned children) bool {
	if !b.waitsForRoom(owned) || b.leftToForget() > 0 {
		return false
	}
	a := helper.RunningAttempt(b.next)
	a.ForgetTime = helper.NotBeforeAttempts(b.next, b.o.Now.Time)
	b.events = append(b.events, Event{Type: corev1.EventTypeWarning, Reason: reasonNodesForgotten, Note: fmt.Sprintf(
		"pods of attempt %d found no room without %s for some minutes; their jobs are created again, and no restart is counted", a.Number,
		nameNodes(a.AvoidedNodes))})
	return true
}

// timeToForget returns when that is due; 0 if it is not.
func (b *statusBuilder) timeToForget(owned children) time.Duration {
	if !b.waitsForRoom(owned) {
		return 0
	}
	return max(b.leftToForget(), time.Second)
}

func (b *statusBuilder) waitsForRoom(owned children) bool {
	a := helper.RunningAttempt(b.next)
	return b.o.Unschedulable.Pods > 0 && shutsOut(a) && a.ForgetTime == nil && !suspended(b.o.JobSet) &&
		len(withoutRoom(b.o, owned.active)) > 0
}

func (b *statusBuilder) leftToForget() time.Duration {
	since := b.o.Unschedulable.Since
	if a := helper.RunningAttempt(b.next); a.RequestTime != nil && a.RequestTime.After(since) {
		since = a.RequestTime.Time
	}
	timeout := forgetAfter
	if b.o.Gates.ExclusivePlacement && AsksForPlacement(b.o.JobSet) {
		timeout += b.o.MoveAfter // the Job may find room in another domain
	}
	return timeout - b.o.Now.Sub(since)
}

func noteAvoided(a *jobsetv1alpha2.Attempt) string {
	last := &a.AvoidedNodes[0]
	return fmt.Sprintf("pods of attempt %d keep off %s; on node %s attempt %d failed: %s", a.Number, nameNodes(a.AvoidedNodes), last.Name,
		last.Attempt, last.Reason)
}

// nameNodes names a few of the nodes.
func nameNodes(nodes []jobsetv1alpha2.AvoidedNode) string {
	names := make([]string, 0, namedNodes)
	for i := range nodes[:min(len(nodes), namedNodes)] {
		names = append(names, nodes[i].Name)
	}
	out := strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	if len(nodes) == 1 {
		return "node " + out
	}
	return "nodes " + out
}

// AvoidedNodes returns the names of the nodes that pods of Jobs which are created now keep off, in order.
func AvoidedNodes(js *jobsetv1alpha2.JobSet, now time.Time) (names []string) {
	a := helper.RunningAttempt(&js.Status)
	if a == nil || a.ForgetTime != nil {
		return nil
	}
	for i := range a.AvoidedNodes {
		if node := &a.AvoidedNodes[i]; node.Until.After(now) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// avoidedKey is the value of the annotation of a Job whose pods keep off nodes.
func avoidedKey(names []string) string { return strings.Join(names, ",") }

// avoidsOtherNodes reports whether the pods of a Job keep off other nodes than they would if it were created now.
func avoidsOtherNodes(o Observed, job *batchv1.Job) bool {
	return job.Annotations[jobsetv1alpha2.AvoidedNodesKey] != avoidedKey(AvoidedNodes(o.JobSet, o.Now.Time))
}
