// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

const (
	// askFreed is the time after which a creation is requested again that was denied for the first time within roomFor after the last child
	// that the controller has deleted was gone: a quota counts it for a moment more.
	askFreed, roomFor = time.Second, askFirst
	// maxLeaving is how many deleted children of one owner are remembered until they are gone.
	maxLeaving = maxDenials
)

// room is what is known of the room that an owner makes for new children by deleting others.
type room struct {
	// leaving are the children whose deletion was accepted, and freed is when the last of them was gone.
	leaving sets.Set[types.UID]
	freed   time.Time
}

// deleted notes that the deletion of a child was accepted. Creations that were denied are requested again at once, since there may be room.
func (d *Denials) deleted(owner metav1.Object, child types.UID, now time.Time) {
	name := cache.MetaObjectToName(owner)
	of := d.rooms[name]
	if of == nil {
		of = &room{leaving: sets.New[types.UID]()}
		d.rooms[name] = of
	}
	if len(of.leaving) < maxLeaving && child != "" {
		of.leaving.Insert(child)
	}
	if denied := d.of(owner); denied != nil {
		denied.lift(now)
	}
}

// Shown notes which children of an owner there are. Each that the controller has deleted, and that is gone, is a reason to request
// creations at once that were denied, within the bounds.
func (d *Denials) Shown(owner metav1.Object, present []consistency.Child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, now := d.rooms[cache.MetaObjectToName(owner)], d.clock.Now()
	if of == nil {
		return
	}
	if of.leaving.Len() == 0 {
		if now.Sub(of.freed) >= roomFor {
			delete(d.rooms, cache.MetaObjectToName(owner))
		}
		return
	}
	there := sets.New[types.UID]()
	for i := range present {
		there.Insert(present[i].UID)
	}
	gone := of.leaving.Difference(there)
	if gone.Len() == 0 {
		return
	}
	if of.leaving = of.leaving.Intersection(there); of.leaving.Len() == 0 {
		of.freed = now
	}
	if denied := d.of(owner); denied != nil {
		denied.lift(now)
	}
}

// lagsBehind returns whether a quota may still count children that are gone.
func (d *Denials) lagsBehind(owner metav1.Object, now time.Time) bool {
	of := d.rooms[cache.MetaObjectToName(owner)]
	return of != nil && of.leaving.Len() == 0 && now.Sub(of.freed) < roomFor
}

// lift makes creations due that were denied for a reason which all children share, as far as the bounds allow.
func (of *denialsOf) lift(now time.Time) {
	for key, known := range of.requests {
		if key.verb == verbCreate && known.reach == allChildren && known.due.After(now) {
			known.due = now
			known.keepApart(key)
		}
	}
}
