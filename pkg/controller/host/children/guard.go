// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// maxGuarded is the number of writes of children of one kind that a Guard remembers. The one that was made longest ago is forgotten first.
const maxGuarded = 10_000

// UndoneError is why a child is not written now: another party undoes each write.
type UndoneError struct {
	message string
	// Next is when the write is made again.
	Next time.Time
}

// Error implements error. The text stays the same until the write is made again, so that conditions and series of events that hold it stay
// as they are.
func (e *UndoneError) Error() string { return e.message }

// Guard bounds the writes of children that another party undoes again and again: it deletes a child whenever it was created, creates it
// whenever it was deleted, changes it when it is created, or changes back what was set. After three such reversals within a minute the
// write is made again at the times of the pace: see undone. Deletions and creations by the controller itself do not count. A process that
// starts knows nothing of earlier reversals. Time alone makes a Guard forget, so that it needs to know nothing of owners that are gone.
type Guard struct {
	noun    string
	clock   Clock
	entries *expiring.LRUExpireCache
}

// NewGuard returns a Guard of children of one kind, which messages call by the noun.
func NewGuard(noun string, clock Clock) *Guard {
	return &Guard{noun, clock, expiring.NewLRUExpireCacheWithClock(maxGuarded, clock)}
}

// write is what a Guard remembers a write by.
type write struct {
	// child is the name of the child for creations, and its UID for changes.
	child any
	// what is what is set; empty for creations. valued means that it is set to one of many values.
	what   string
	valued bool
}

// Creating returns an UndoneError while a child is not to be created, because it was deleted each time.
func (g *Guard) Creating(owner, child metav1.Object) error {
	return g.check(creationOf(child), creatorOf(owner, child), func(next string) string {
		return fmt.Sprintf("%s %s was deleted %d times within a minute, each time after the controller had created it; the API "+
			"does not say who deletes it, the audit log does; the controller creates it again at %s", g.noun, child.GetName(), maxReversals, next)
	})
}

// Created notes that a child was created. One that the cluster deletes by itself once it has finished is created again
// as often as it finishes.
func (g *Guard) Created(owner, child metav1.Object) {
	g.entries.Remove(removalOf(child))
	if expires(child) {
		return
	}
	key := creationOf(child)
	was, found := g.known(key, creatorOf(owner, child))
	if found { // else it is no reversal
		was = was.again(g.clock.Now())
	}
	g.note(key, was)
}

// Deleting notes that the controller itself deletes a child.
func (g *Guard) Deleting(namespace, name string) {
	g.entries.Remove(creationOf(&metav1.ObjectMeta{Namespace: namespace, Name: name}))
}

// Changing returns an UndoneError while a change of a child is not to be made, because it was undone each time. What
// names what is set, and path the field: the manager that has set it otherwise is known if the child has its managed
// fields.
func (g *Guard) Changing(owner, child metav1.Object, what string, path ...string) error {
	return g.check(changeOf(child, what), generationOf(owner), func(next string) string {
		return g.changed(child, what, "set it", ManagerOf(child, path...), "sets it again at "+next)
	})
}

// Changed notes that the change of a child was made.
func (g *Guard) Changed(owner, child metav1.Object, what string) {
	g.noteAgain(changeOf(child, what), generationOf(owner))
}

// ChangingTo is Changing for a change that may set other values in its turn. A write of another value is another write, and no reversal.
func (g *Guard) ChangingTo(owner, child metav1.Object, what, value string) error {
	return g.check(valueOf(child, what), valueFor(owner, value), func(next string) string {
		return g.changed(child, what, "set it", "", "sets it again at "+next)
	})
}

// ChangedTo notes that a change of a child was made that may set other values in its turn.
func (g *Guard) ChangedTo(owner, child metav1.Object, what, value string) {
	g.noteAgain(valueOf(child, what), valueFor(owner, value))
}

// Reverting notes that the controller itself takes a change of a child back.
func (g *Guard) Reverting(child metav1.Object, what string) { g.entries.Remove(changeOf(child, what)) }

// Replacing returns an UndoneError while a child that differs from what the controller had created is not to be replaced, because its
// successors were changed each time. What names what differs.
func (g *Guard) Replacing(owner, child metav1.Object, what string) error {
	return g.check(replacementOf(owner, child), generationOf(owner), func(next string) string {
		return g.changed(child, what, "created it", "", "replaces it at "+next)
	})
}

// Replaced notes that a child was deleted because it differs from what the controller had created, or that another one was created for it.
func (g *Guard) Replaced(owner, child metav1.Object) {
	g.noteAgain(replacementOf(owner, child), generationOf(owner))
}

// Ending notes that the controller itself makes a child one that may have to be replaced.
func (g *Guard) Ending(owner, child metav1.Object) { g.entries.Remove(replacementOf(owner, child)) }

// changed says that a child is another one than what the controller has made of it.
func (g *Guard) changed(child metav1.Object, what, did, by, next string) string {
	unknown := ""
	if by == "" {
		unknown = "; the API does not say who does, the audit log does"
	}
	return fmt.Sprintf("%s removed or changed %s of %s %s %d times within a minute, each time after the controller had %s%s; "+
		"the controller %s", cmp.Or(by, "another party"), what, g.noun, child.GetName(), maxReversals, did, unknown, next)
}

// check returns an UndoneError while a write is not to be made. The text is made for the time at which it is made again.
func (g *Guard) check(key write, owner string, text func(next string) string) error {
	was, found := g.known(key, owner)
	if !found || was.due(g.clock.Now()) {
		return nil
	}
	return &UndoneError{text(was.next().UTC().Format(time.RFC3339)), was.next()}
}

// note remembers a write for as long as its child may not last, and some time more.
func (g *Guard) note(key write, is undone) { g.entries.Add(key, is, is.wait()+lasting) }

// noteAgain remembers that a write was made again.
func (g *Guard) noteAgain(key write, owner string) {
	was, _ := g.known(key, owner)
	g.note(key, was.again(g.clock.Now()))
}

// known returns what is remembered of a write for an owner.
func (g *Guard) known(key write, owner string) (undone, bool) {
	value, _ := g.entries.Get(key)
	if was, ok := value.(undone); ok && was.owner == owner {
		return was, true
	}
	return undone{owner: owner}, false
}

// creationOf, changeOf, valueOf and replacementOf return what writes are remembered by.
func creationOf(child metav1.Object) write { return write{child: cache.MetaObjectToName(child)} }

func changeOf(child metav1.Object, what string) write {
	return write{child: child.GetUID(), what: what}
}

func valueOf(child metav1.Object, what string) write {
	return write{child: child.GetUID(), what: what, valued: true}
}

func replacementOf(owner, child metav1.Object) write {
	return write{child: cache.NewObjectName(owner.GetNamespace(), child.GetName()), what: "replacement"}
}

// generationOf names a generation of an object.
func generationOf(object metav1.Object) string {
	return fmt.Sprint(object.GetUID(), "/", object.GetGeneration())
}

// valueFor names a generation of an object, and a value that is written for it.
func valueFor(owner metav1.Object, value string) string { return generationOf(owner) + "=" + value }

// creatorOf names a generation of the owner of a child, and what controls the child.
func creatorOf(owner, child metav1.Object) string {
	return fmt.Sprint(controllerOf(owner, child), "/", owner.GetGeneration())
}

// controllerOf returns the UID of what controls a child; the UID of its owner if nothing does. With a new controller, such as the next
// leader pod, comes a new child.
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
