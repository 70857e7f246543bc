// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// eventsAhead is how many events wait for their watcher to encode them. What is encoded is sent when none waits.
// Watches of one object, of which there are thousands when each pod of a set has one, need less.
const eventsAhead, eventsAheadOfOne = 100, 10

// lister lists objects from a watch cache and never from etcd. A cacher.Cacher is one.
type lister interface {
	Ready() bool
	LastSyncResourceVersion() (uint64, error)
	GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error
}

// initial is a watch cache that shares work between watches that begin with all objects: watches that ask for initial events (WatchList),
// and watches without a version. The watch cache copies each object for each watcher, and each watcher encodes the copy; with informers of
// many clients that connect at the same time, after an update of the server for example, that is most of what the server does. Here the
// objects come from a list, which copies nothing, and watchers that are served at about the same time share what is encoded. The watch
// continues from the version of the list.
type initial struct {
	storage.Interface
	cache                lister
	newFunc, newListFunc func() runtime.Object
	encodings            *encodings
}

// Watch implements storage.Interface.
func (s *initial) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	all := ptr.Deref(opts.SendInitialEvents, false) || ofNoVersion(opts)
	if !s.cache.Ready() || !all && !transformed(ctx) && !s.replays(opts) {
		return s.Interface.Watch(ctx, key, opts)
	}
	var events []watch.Event
	if all {
		var version string
		var err error
		if events, version, err = s.events(ctx, key, opts); err != nil {
			return s.Interface.Watch(ctx, key, opts) // the watch cache decides what that means
		}
		opts.ResourceVersion, opts.ResourceVersionMatch, opts.SendInitialEvents = version, "", nil
	}
	next, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	ahead := eventsAhead
	if !opts.Recursive {
		ahead = eventsAheadOfOne
	}
	w := &sequel{Interface: next, encodings: s.encodings, events: make(chan watch.Event, ahead), stopped: make(chan struct{})}
	go w.run(events)
	return w, nil
}

// replays returns whether a watch begins with changes of the past, of which the watch cache, too, gives each watcher copies to encode.
func (s *initial) replays(opts storage.ListOptions) bool {
	version, err := s.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return false
	}
	last, err := s.cache.LastSyncResourceVersion()
	return err == nil && version > 0 && version < last
}

type transformedKey struct{}

// WithTransform says that the client of the watch in the context wants its objects in another form, a table for
// example. The encoder of that form would keep its largest event as long as the watch lives, so it is given objects of
// which it keeps nothing.
func WithTransform(ctx context.Context) context.Context {
	return context.WithValue(ctx, transformedKey{}, true)
}

func transformed(ctx context.Context) bool { return ctx.Value(transformedKey{}) != nil }

// ofNoVersion returns whether a watch that does not say so begins with the objects that the watch cache has. That is
// how clients watch that have listed nothing. While the gate WatchList is on, the API server makes such a request say
// so.
func ofNoVersion(opts storage.ListOptions) bool {
	return opts.SendInitialEvents == nil && (opts.ResourceVersion == "" || opts.ResourceVersion == "0")
}

// events returns an event for each object, and one that says that these were all, if the watch asks for it; and the version that they show.
func (s *initial) events(ctx context.Context, key string, opts storage.ListOptions) (events []watch.Event, version string, err error) {
	marked := ptr.Deref(opts.SendInitialEvents, false) && opts.Predicate.AllowWatchBookmarks
	switch {
	case ofNoVersion(opts):
		opts.ResourceVersion = "0"
	case opts.ResourceVersion == "":
		current, err := s.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, "", err
		}
		opts.ResourceVersion = strconv.FormatUint(current, 10)
	}
	list := s.newListFunc()
	options := storage.ListOptions{
		ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Predicate: opts.Predicate,
		Recursive: opts.Recursive,
	}
	if err := s.cache.GetList(ctx, key, options, list); err != nil {
		return nil, "", err
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(object)
		if !ok {
			return fmt.Errorf("%T has no metadata", item)
		}
		events = append(events, watch.Event{Type: watch.Added, Object: &shared{object: object, encodings: s.encodings}})
		return nil
	})
	if err != nil || !marked {
		return events, of.GetResourceVersion(), err
	}
	end, err := s.bookmark(of.GetResourceVersion())
	return append(events, end), of.GetResourceVersion(), err
}

// bookmark returns the event at the end of the initial ones.
func (s *initial) bookmark(version string) (watch.Event, error) {
	mark := s.newFunc()
	of, err := meta.Accessor(mark)
	if err != nil {
		return watch.Event{}, err
	}
	of.SetResourceVersion(version)
	of.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return watch.Event{Type: watch.Bookmark, Object: mark}, nil
}

// sequel is a watch with events before those of another one.
type sequel struct {
	watch.Interface
	encodings *encodings
	events    chan watch.Event
	stopped   chan struct{}
	once      sync.Once
}

// ResultChan implements watch.Interface.
func (w *sequel) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *sequel) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

func (w *sequel) run(before []watch.Event) {
	defer close(w.events)
	defer w.Interface.Stop()
	for i, event := range before {
		if before[i] = (watch.Event{}); !w.send(event) {
			return
		}
	}
	for event := range w.Interface.ResultChan() {
		if !w.send(w.share(event)) {
			return
		}
	}
}

// share returns the event with an object that is encoded once for all. Those that the watch cache gives to few watches,
// and those of the past, are not. No two events of a version have the same type and different objects, so their
// encodings differ by their formats.
func (w *sequel) share(event watch.Event) watch.Event {
	if _, shares := event.Object.(runtime.CacheableObject); shares {
		return event
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if object, ok := event.Object.(object); ok {
			event.Object = &shared{object: object, encodings: w.encodings}
		}
	}
	return event
}

// send returns whether the client still watches.
func (w *sequel) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.stopped:
		return false
	}
}
