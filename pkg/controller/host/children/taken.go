// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// NamesTakenFor is the time between two looks at a name that another object has. No watch shows when an object without our labels is gone.
	NamesTakenFor = 30 * time.Second
	// takenRemembered is for how long a taken name is remembered once it should have been looked at.
	takenRemembered = 5 * time.Minute
)

// StillTaken returns whether another object has the name of a child: one that a look has shown within the last takenFor, or shows now.
// While it does, the API is not asked to create the child, which it would refuse. isChild returns whether an object is the child.
func (w *Writer[T]) StillTaken(ctx context.Context, child T, takenFor time.Duration, isChild func(existing T) bool) bool {
	value, found := w.taken.Get(cache.MetaObjectToName(child).String())
	if !found {
		return false
	}
	look, _ := value.(time.Time)
	if left := look.Sub(w.host.Clock.Now()); left > 0 && left <= NamesTakenFor { // the clock of the machine may be set back
		return true
	}
	existing, err := w.Get(ctx, child.GetNamespace(), child.GetName())
	switch {
	case err == nil && !isChild(existing):
		w.NameTaken(child, takenFor)
		return true
	case err == nil, apierrors.IsNotFound(err):
		w.NameFreed(cache.MetaObjectToName(child))
	}
	return false
}

// NameTaken notes that another object has the name of a child, so that the name is looked at again after takenFor.
func (w *Writer[T]) NameTaken(child T, takenFor time.Duration) {
	look := w.host.Clock.Now().Add(takenFor - askBefore)
	w.taken.Add(cache.MetaObjectToName(child).String(), look, takenFor+takenRemembered)
}

// NameFreed forgets that another object has a name.
func (w *Writer[T]) NameFreed(name cache.ObjectName) { w.taken.Remove(name.String()) }

// Taken notes that another object has the name of a child, so that the child is asked for again after NamesTakenFor. It returns err as a
// DeniedError.
func (d *Denials) Taken(owner metav1.Object, what Request, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, key, now := d.ensure(owner), what.key(thisChild), d.clock.Now()
	known := of.requests[key]
	if known == nil {
		known = &denial{first: now}
		of.requests[key] = known
	}
	known.err, known.reach, known.last, known.due = err, thisChild, now, now.Add(NamesTakenFor)
	return &DeniedError{err, thisChild, known.due, true}
}
