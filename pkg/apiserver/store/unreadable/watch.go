// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"cmp"
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

const (
	// lookTimeout bounds a look at the objects that could not be read, and maxLooks is how many it reads. The next look
	// goes on with those behind.
	lookTimeout = 10 * time.Second
	maxLooks    = 20
	// waiting is how many events wait for the watch cache.
	waiting = 100
)

// watching is a watch that remembers which objects cannot be read. It ends with an error when one of them can be read
// without having been written, so that the watch cache lists again.
type watching struct {
	next   watch.Interface
	store  *store
	out    chan watch.Event
	ctx    context.Context
	cancel context.CancelFunc
	// initial counts the objects before the mark that says that these were all.
	initial tally
}

func newWatching(next watch.Interface, s *store) *watching {
	w := &watching{next: next, store: s, out: make(chan watch.Event, waiting)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// ResultChan implements watch.Interface.
func (w *watching) ResultChan() <-chan watch.Event { return w.out }

// Stop implements watch.Interface.
func (w *watching) Stop() { w.cancel() }

func (w *watching) run() {
	defer close(w.out)
	defer w.next.Stop()
	look := time.NewTicker(w.store.of.objects.lookInterval)
	defer look.Stop()
	mended := make(chan struct{}, 1)
	behind := ""
	for {
		select {
		case event, ok := <-w.next.ResultChan():
			if !ok {
				return
			}
			event, last := w.see(event)
			if !w.send(event) || last {
				return
			}
		case <-look.C:
			var looked []Object
			looked, behind = nextLook(w.store.of.objects.of(w.store.of.GroupResource), behind)
			go w.look(looked, mended)
		case <-mended:
			klog.Background().Info("Objects can be read again; their resource is listed again", "resource", w.store.of.GroupResource)
			w.send(again("objects that could not be read can be read again"))
			return
		case <-w.ctx.Done():
			return
		}
	}
}

// again is an event that makes the watch cache list again.
func again(reason string) watch.Event {
	status := apierrors.NewResourceExpired(reason).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

func (w *watching) send(event watch.Event) bool {
	select {
	case w.out <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// see remembers whether the object of an event can be read. It returns the event, or another one that ends the watch.
func (w *watching) see(event watch.Event) (out watch.Event, last bool) {
	switch event.Type {
	case watch.Added, watch.Modified:
		w.store.see(event.Object, &w.initial)
	case watch.Deleted:
		found, err := meta.Accessor(event.Object)
		if err != nil { // the value in etcd was empty, of which the library makes no object: its name is not known
			return again("an object without content was deleted"), true
		}
		if !w.store.of.objects.none() {
			w.store.of.objects.remove(w.store.of.GroupResource, w.store.of.key(found))
		}
	case watch.Bookmark:
		if end, err := storage.HasInitialEventsEndBookmarkAnnotation(event.Object); err == nil && end {
			if err := w.initial.check(w.store.of); err != nil {
				status := apierrors.NewInternalError(err).Status()
				return watch.Event{Type: watch.Error, Object: &status}, true
			}
		}
	}
	return event, false
}

// nextLook returns those of some objects, sorted by key, that a look reads, and the key behind which the next one goes on.
func nextLook(known []Object, behind string) (looked []Object, last string) {
	from, _ := slices.BinarySearchFunc(known, behind, func(o Object, key string) int {
		return cmp.Or(cmp.Compare(o.Key, key), -1)
	})
	looked = known[from:min(len(known), from+maxLooks)]
	if len(looked) < maxLooks {
		return looked, "" // the next look begins again
	}
	return looked, looked[len(looked)-1].Key
}

// look reads objects that could not be read.
func (w *watching) look(known []Object, mended chan<- struct{}) {
	ctx, cancel := context.WithTimeout(w.ctx, lookTimeout)
	defer cancel()
	for _, o := range known {
		if w.readable(ctx, o) {
			select {
			case mended <- struct{}{}:
			default:
			}
			return
		}
	}
}

// readable returns whether an object can be read. One that is gone is forgotten.
func (w *watching) readable(ctx context.Context, o Object) bool {
	of := w.store.of
	obj := of.newFunc()
	err := w.store.Interface.Get(withReading(ctx, strict), of.relative(o.Key), storage.GetOptions{IgnoreNotFound: true}, obj)
	if err != nil {
		return false
	}
	of.objects.remove(of.GroupResource, o.Key)
	return named(obj)
}

func named(obj runtime.Object) bool {
	found, err := meta.Accessor(obj)
	return err == nil && found.GetName() != "" && !unreadable.Is(found)
}
