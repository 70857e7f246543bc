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
const eventsAhead = 100

// lister lists objects from a watch cache and never from etcd. A cacher.Cacher is one.
type lister interface {
	Ready() bool
	GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error
}

// initial is a watch cache whose watches that begin with all objects share work: those that ask for initial events (WatchList), and those of no version. The watch cache copies each object for each
// watcher, and each watcher encodes the copy; with informers of many clients that connect at the same time, after an update of the server for
// example, that is most of what the server does. Here the objects come from a list, which copies nothing, and watchers
// that are served at about the same time share what is encoded. The watch continues from the version of the list.
type initial struct {
	storage.Interface
	cache                lister
	newFunc, newListFunc func() runtime.Object
	encodings            *encodings
}

// Watch implements storage.Interface.
func (s *initial) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	marked := ptr.Deref(opts.SendInitialEvents, false) && opts.Predicate.AllowWatchBookmarks
	if !marked && !ofNoVersion(opts) || !opts.Recursive || !s.cache.Ready() {
		return s.Interface.Watch(ctx, key, opts)
	}
	events, version, err := s.events(ctx, key, opts)
	if err != nil {
		return s.Interface.Watch(ctx, key, opts) // the watch cache decides what that means
	}
	opts.ResourceVersion, opts.ResourceVersionMatch, opts.SendInitialEvents = version, "", nil
	next, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	w := &sequel{Interface: next, events: make(chan watch.Event, eventsAhead), stopped: make(chan struct{})}
	go w.run(events)
	return w, nil
}

// ofNoVersion returns whether a watch begins with the objects that the watch cache has, without a mark after the last of them. That is how clients watch that
// have listed nothing.
func ofNoVersion(opts storage.ListOptions) bool {
	return opts.SendInitialEvents == nil && (opts.ResourceVersion == "" || opts.ResourceVersion == "0")
}

// events returns an event for each object, and one that says that these were all, if the watch asks for it; and the version that they show.
func (s *initial) events(ctx context.Context, key string, opts storage.ListOptions) (events []watch.Event, version string, err error) {
	unmarked := ofNoVersion(opts)
	switch {
	case unmarked:
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
		ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Predicate: opts.Predicate, Recursive: true,
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
	if err != nil || unmarked {
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
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
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
		if !w.send(event) {
			return
		}
	}
}

// send returns whether somebody still watches.
func (w *sequel) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.stopped:
		return false
	}
}
