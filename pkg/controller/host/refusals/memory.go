// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// lasts is how long after its last event a refusal counts. The controllers of the cluster try again more often than that, also the one of
	// StatefulSets, which waits for up to 17 minutes.
	lasts = 30 * time.Minute
	// maxOvercome is the number of objects of which it is remembered that they have had all pods since an event.
	maxOvercome = 20_000
)

// Memory has the refusals of the pods of Jobs or StatefulSets.
type Memory struct {
	events *informers.Informer
	clock  clock.PassiveClock
	// overcome are the times of the last events before objects had all their pods, by UID. An older event is about the past, should
	// the object lack pods again for another reason.
	overcome *expiring.LRUExpireCache
}

// New returns the refusals of pods of objects of a kind, "Job" or "StatefulSet". While the controller has no permission to
// watch events, there are none.
func New(factory *informers.Kind, kind string, clock clock.PassiveClock) *Memory {
	return &Memory{events: factory.Informer(Need(factory, kind)), clock: clock, overcome: expiring.NewLRUExpireCacheWithClock(maxOvercome,
		clock)}
}

// OnRefusal has f called with the object of each event, if the cache of objects has it.
func (r *Memory) OnRefusal(objects *informers.Informer, f func(obj any)) {
	look := func(obj any) {
		e, ok := obj.(*Event)
		if !ok {
			return
		}
		if object, err := objects.GetByKey(e.About().String()); err == nil && object != nil {
			f(object)
		}
	}
	r.events.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }})
}

// PodRefusal returns why pods of an object are refused; nil if none are, as far as is known. Lacks means that it has too few pods.
func (r *Memory) PodRefusal(uid types.UID, lacks bool) *plan.Refusal {
	newest := r.newest(uid)
	if newest == nil {
		return nil
	}
	if !lacks {
		r.overcome.Add(uid, newest.at, 2*lasts)
		return nil
	}
	if at, found := r.overcome.Get(uid); found && !newest.at.After(at.(time.Time)) || r.clock.Since(newest.at) > lasts {
		return nil
	}
	return &plan.Refusal{Reason: newest.reason, Message: newest.message.Value(), At: newest.at}
}

func (r *Memory) newest(uid types.UID) (newest *Event) {
	objs, err := r.events.ByIndex(indexAbout, string(uid))
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		e, ok := obj.(*Event)
		if ok && (newest == nil || e.at.After(newest.at) || e.at.Equal(newest.at) && e.name < newest.name) {
			newest = e
		}
	}
	return newest
}
