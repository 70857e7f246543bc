// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// maxGuarded is the number of children of one kind that a Guard remembers. The one that was written longest ago is forgotten first.
const maxGuarded = 10_000

// UndoneError is why a child is not written now: another party undoes each write.
type UndoneError struct{ message string }

// Error implements error. The text stays the same with each try, so that conditions and series of events that hold it stay as they are.
func (e *UndoneError) Error() string { return e.message }

// Guard bounds the writes of children that another party undoes again and again: it deletes a child whenever it was
// created, or takes labels away whenever they were put back. After three such reversals within a minute a write is due
// only from time to time. Deletions by the controller itself do not count. A process that starts knows nothing of
// earlier reversals. Time alone makes a Guard forget, so that it needs to know nothing of owners that are gone.
type Guard struct {
	noun    string
	clock   Clock
	entries *expiring.LRUExpireCache
}

// NewGuard returns a Guard of children of one kind, which messages call by the noun.
func NewGuard(noun string, clock Clock) *Guard {
	return &Guard{noun, clock, expiring.NewLRUExpireCacheWithClock(maxGuarded, clock)}
}

// rule is how often one kind of write is repeated once it is contested.
type rule struct {
	// waits are the times before the first repetition and before later ones.
	first, later time.Duration
	// forget is how long after the last write it is forgotten. It is longer than the waits and the backoff of the queue.
	forget time.Duration
}

var (
	creating = rule{first: time.Minute, later: 2 * time.Minute, forget: 5 * time.Minute}
	changing = rule{first: 10 * time.Minute, later: 10 * time.Minute, forget: 20 * time.Minute}
)

// undone is what is remembered of one write.
type undone struct {
	// owner is in whose name it was made. A write for another owner is another write.
	owner types.UID
	// at are the latest times at which it was made again.
	at times
	// late is how often it was made although it was contested.
	late int
}

// due returns whether a write may be made again.
func (u undone) due(now time.Time, by rule) bool {
	if u.late == 0 && !u.at.often() {
		return true
	}
	wait := by.later
	if u.late == 0 {
		wait = by.first
	}
	passed := now.Sub(u.at[len(u.at)-1])
	return passed < 0 || passed >= wait // the clock of the machine may be set back
}

// again returns what is remembered once a write was made again.
func (u undone) again(now time.Time) undone {
	next := undone{owner: u.owner, at: u.at.and(now), late: u.late}
	if u.late > 0 || u.at.often() {
		next.late++
	}
	return next
}

// creationOf and changeOf are the keys under which writes are remembered.
type (
	creationOf cache.ObjectName
	changeOf   types.UID
)

// Creating returns an UndoneError while a child is not to be created, because it was deleted each time.
func (g *Guard) Creating(owner, child metav1.Object) error {
	was, found := g.known(creationOf(cache.MetaObjectToName(child)), controllerOf(owner, child))
	if !found || was.due(g.clock.Now(), creating) {
		return nil
	}
	return &UndoneError{fmt.Sprintf("%s %s was deleted %d times within a minute, each time after the controller had created it; the API "+
		"does not say who deletes it, the audit log does; the controller creates it at most every %d "+
		"minutes", g.noun, child.GetName(), maxReversals,
		int(creating.later.Minutes()))}
}

// Created notes that a child was created. One that the cluster deletes by itself once it has finished is created again
// as often as it finishes.
func (g *Guard) Created(owner, child metav1.Object) {
	if expires(child) {
		return
	}
	key, controller := creationOf(cache.MetaObjectToName(child)), controllerOf(owner, child)
	was, found := g.known(key, controller)
	if !found {
		g.entries.Add(key, undone{owner: controller}, creating.forget)
		return
	}
	g.entries.Add(key, was.again(g.clock.Now()), creating.forget)
}

// Deleting notes that the controller itself deletes a child.
func (g *Guard) Deleting(namespace, name string) {
	g.entries.Remove(creationOf(cache.NewObjectName(namespace, name)))
}

// Changing returns an UndoneError while a change of a child is not to be made, because it was undone each time. What
// names what is set, and path the field: the manager that has set it otherwise is known if the child has its managed
// fields.
func (g *Guard) Changing(child metav1.Object, what string, path ...string) error {
	was, found := g.known(changeOf(child.GetUID()), "")
	if !found || was.due(g.clock.Now(), changing) {
		return nil
	}
	who, unknown := "another party", "; the API does not say who does, the audit log does"
	if by := ManagerOf(child, path...); by != "" {
		who, unknown = by, ""
	}
	return &UndoneError{fmt.Sprintf("%s removed or changed %s of %s %s %d times within a minute, each time after the controller had set "+
		"it%s; the controller sets it at most every %d minutes", who, what, g.noun, child.GetName(), maxReversals, unknown,
		int(changing.later.Minutes()))}
}

// Changed notes that the change of a child was made. A controller makes one kind of change of the children that a Guard knows.
func (g *Guard) Changed(child metav1.Object) {
	key := changeOf(child.GetUID())
	was, _ := g.known(key, "")
	g.entries.Add(key, was.again(g.clock.Now()), changing.forget)
}

// Reverting notes that the controller itself takes a change of a child back.
func (g *Guard) Reverting(child metav1.Object) { g.entries.Remove(changeOf(child.GetUID())) }

// known returns what is remembered of a write for an owner.
func (g *Guard) known(key any, owner types.UID) (undone, bool) {
	value, found := g.entries.Get(key)
	if !found {
		return undone{owner: owner}, false
	}
	was, ok := value.(undone)
	return was, ok && was.owner == owner
}

// controllerOf returns the UID of what controls a child; that of its owner if nothing does. With a new controller, such
// as the next leader pod, comes a new child.
func controllerOf(owner, child metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
		return ref.UID
	}
	return owner.GetUID()
}

// expires returns whether the cluster deletes a child some time after it has finished.
func expires(child metav1.Object) bool {
	switch child := child.(type) {
	case *batchv1.Job:
		return child.Spec.TTLSecondsAfterFinished != nil
	case *jobsetv1alpha2.JobSet:
		return child.Spec.TTLSecondsAfterFinished != nil
	}
	return false
}
