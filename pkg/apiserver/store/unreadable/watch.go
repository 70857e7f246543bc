// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// waiting is how many events wait for the watch cache.
const waiting = 100

// watching is a watch that remembers which objects cannot be read.
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
