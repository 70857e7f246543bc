// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// statusBuilder is the next status in the making, with the events that its transitions cause.
type statusBuilder struct {
	o      Observed
	next   *leaderworkersetv1.LeaderWorkerSetStatus
	events []Event
}

func newStatus(o Observed) *statusBuilder {
	return &statusBuilder{o: o, next: o.Set.Status.DeepCopy()}
}

// result returns the next status, nil if the stored one is right.
func (b *statusBuilder) result() (*leaderworkersetv1.LeaderWorkerSetStatus, []Event) {
	if equality.Semantic.DeepEqual(&b.o.Set.Status, b.next) {
		return nil, b.events
	}
	return b.next, b.events
}

// event reports something about the set once its status is stored.
func (b *statusBuilder) event(eventType, reason, action, note string) {
	b.events = append(b.events, Event{Type: eventType, Reason: reason, Action: action, Note: note})
}

// fold reports the troubles of the set, and returns when to look at them again; 0 for never.
func (b *statusBuilder) fold(troubles ...hostplan.Trouble) time.Duration {
	conditions, events, due := hostplan.Fold(b.next.Conditions, b.o.Set.Generation, b.o.Now, troubles...)
	b.next.Conditions = conditions
	for _, e := range events {
		b.event(e.Type, e.Reason, ActionCreate, e.Note)
	}
	return due
}

// counts are what conditions depend on. Those of a surge count only where it says so.
type counts struct {
	// current groups have to be of the current revision. Of these, updated groups are of that revision, and done groups are ready too.
	current, updated, done int32
	// ready groups are ready, at any revision.
	ready int32
	// ownUpdated are the wanted replicas of the current revision. allReady and allUpdated include the groups of a surge.
	ownUpdated, allReady, allUpdated int32
}

func count(groups []group, replicas, partition int32) (c counts) {
	for i := range groups {
		g := &groups[i]
		if !g.complete() {
			continue
		}
		wanted := g.index < replicas
		rolled := wanted && g.index >= partition
		c.current += one(rolled)
		c.updated += one(rolled && g.updated)
		c.done += one(rolled && g.updated && g.ready)
		c.ready += one(wanted && g.ready)
		c.ownUpdated += one(wanted && g.updated)
		c.allReady += one(g.ready)
		c.allUpdated += one(g.updated)
	}
	return c
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// observe records what the children are like.
func (b *statusBuilder) observe(groups []group) {
	set := b.o.Set
	replicas := helper.Replicas(set)
	c := count(groups, replicas, helper.Partition(set))
	b.next.ReadyReplicas, b.next.UpdatedReplicas, b.next.Replicas = c.allReady, c.allUpdated, 0
	if admittedByKueue(set) {
		b.next.UpdatedReplicas = c.ownUpdated
	}
	if b.o.Leader != nil {
		b.next.Replicas = b.o.Leader.Status.Replicas
	}
	if b.next.HPAPodSelector == "" {
		b.next.HPAPodSelector = helper.HPAPodSelector(set.Name)
	}
	b.next.ObservedGeneration = set.Generation
	switch {
	case c.updated < c.current: // there are no groups without a leader StatefulSet
		b.assert(updateInProgress, progressing)
	case b.o.Leader != nil && c.ready == replicas && c.done == c.current:
		b.assert(available)
	case replicas > 0:
		b.assert(progressing)
	}
	for i := range b.next.Conditions {
		b.next.Conditions[i].ObservedGeneration = set.Generation
	}
}

// admittedByKueue returns whether Kueue admits the groups of a set: it marks the template of their workers. Kueue takes
// as many updated replicas as the set has for the end of an update and deletes the Workloads of the surge, so that an
// update that waits for the surge would never end if the surge counted.
func admittedByKueue(set *leaderworkersetv1.LeaderWorkerSet) bool {
	worker := &set.Spec.LeaderWorkerTemplate.WorkerTemplate
	return set.Labels[kueueplan.QueueKey] != "" || worker.Labels[kueueplan.QueueKey] != "" ||
		worker.Annotations[kueueplan.SuspendingParentKey] != ""
}

// progress is a condition that says how far a set is. The others are set False by it.
type progress struct {
	condition, reason, message string
	others                     []string
}

var (
	available = progress{
		leaderworkersetv1.ConditionAvailable, leaderworkersetv1.ReasonAllGroupsReady, "All replicas are ready",
		[]string{leaderworkersetv1.ConditionProgressing, leaderworkersetv1.ConditionUpdateInProgress},
	}
	progressing = progress{
		leaderworkersetv1.ConditionProgressing, leaderworkersetv1.ReasonGroupsProgressing, "Replicas are progressing",
		[]string{leaderworkersetv1.ConditionAvailable},
	}
	updateInProgress = progress{
		leaderworkersetv1.ConditionUpdateInProgress, leaderworkersetv1.ReasonGroupsUpdating, "Rolling Upgrade is in progress",
		[]string{leaderworkersetv1.ConditionAvailable},
	}
)

// assert makes conditions True, in order, until one of them changes something: the others follow in the next pass. The
// first one names the event.
func (b *statusBuilder) assert(wanted ...progress) {
	for _, w := range wanted {
		if !b.set(w) {
			continue
		}
		first := wanted[0]
		b.event(corev1.EventTypeNormal, first.reason, ActionUpdate, fmt.Sprintf("%s, with %d groups ready of total %d groups",
			first.message, b.next.ReadyReplicas, helper.Replicas(b.o.Set)))
		return
	}
}

// set makes a condition True, and those False that exclude it. It returns whether anything changed.
func (b *statusBuilder) set(w progress) (changed bool) {
	generation := b.o.Set.Generation
	for i := range b.next.Conditions {
		c := &b.next.Conditions[i]
		if slices.Contains(w.others, c.Type) && c.Status == metav1.ConditionTrue {
			c.Status, c.LastTransitionTime, c.ObservedGeneration = metav1.ConditionFalse, b.o.Now, generation
			changed = true
		}
	}
	next := metav1.Condition{
		Type: w.condition, Status: metav1.ConditionTrue, Reason: w.reason, Message: w.message, LastTransitionTime: b.o.Now,
		ObservedGeneration: generation,
	}
	current := meta.FindStatusCondition(b.next.Conditions, w.condition)
	switch {
	case current == nil:
		b.next.Conditions = append(b.next.Conditions, next)
	case current.Status != metav1.ConditionTrue || current.ObservedGeneration != generation:
		*current = next
	default:
		return changed
	}
	return true
}

const (
	// countsPerGroup is by how much each group of a set lets counts in the status be older, and countsMost how old they
	// are at most. While many groups change, most counts are on their way from one that matters to the next, and are
	// written together.
	countsPerGroup, countsMost = 20 * time.Millisecond, 5 * time.Second
)

// countsMayWait returns how long the next status may wait for other changes, because nothing but counts differs from
// the stored one; 0 for one that is written now. Counts that complete something do not wait.
func countsMayWait(o Observed, next *leaderworkersetv1.LeaderWorkerSetStatus) time.Duration {
	wanted := helper.Replicas(o.Set)
	if next == nil || next.Replicas == wanted && next.ReadyReplicas == wanted && next.UpdatedReplicas == wanted {
		return 0
	}
	stored, rest := &o.Set.Status, *next
	rest.Replicas, rest.ReadyReplicas, rest.UpdatedReplicas = stored.Replicas, stored.ReadyReplicas, stored.UpdatedReplicas
	if !equality.Semantic.DeepEqual(stored, &rest) {
		return 0
	}
	return max(0, min(time.Duration(wanted)*countsPerGroup, countsMost)-o.CountsWaited)
}
