// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
)

const (
	// maxWatchSeconds is after how many seconds at most a watcher connects again, so that it does without faults, too.
	maxWatchSeconds = 8
	// rewatchPause is the time until a watcher that was refused tries again.
	rewatchPause = 50 * time.Millisecond
)

// watcher does what an informer does: it lists, watches from there, and connects again from the last version that it knows.
type watcher struct {
	*Run
	Watcher
	jobSets typedv1alpha2.JobSetInterface
	dice    *rand.Rand
	// streams says that the watcher asks for the first objects as events, as new informers do.
	streams bool
	// version is the last one that it knows; it must list if that is 0.
	version int64
	last    atomic.Int64
}

// reached returns the last version that the watcher was shown.
func (w *watcher) reached() int64 { return w.last.Load() }

func (w *watcher) work(ctx context.Context) {
	for ctx.Err() == nil {
		if w.once(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatchPause):
		}
	}
}

// once lists if it must, and watches until the connection ends. It returns false if it was refused.
func (w *watcher) once(ctx context.Context) bool {
	options := metav1.ListOptions{
		AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(1 + w.dice.IntN(maxWatchSeconds))), ResourceVersion: strconv.FormatInt(w.version, 10),
	}
	switch {
	case w.version == 0 && w.streams:
		options.ResourceVersion, options.SendInitialEvents, options.ResourceVersionMatch = "", ptr.To(true), metav1.ResourceVersionMatchNotOlderThan
	case w.version == 0:
		return w.list(ctx)
	}
	stream, err := w.jobSets.Watch(ctx, options)
	if err != nil {
		w.forget(err)
		return false
	}
	defer stream.Stop()
	w.Connections++
	w.receive(stream, options.SendInitialEvents != nil)
	return true
}

// forget makes the watcher list again if its version is too old.
func (w *watcher) forget(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		w.version = 0
	}
}

func (w *watcher) list(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	list, err := w.jobSets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	w.record(Event{Type: Listed, State: State{Version: versionOf(list.ResourceVersion)}, Items: itemsOf(list)})
	return true
}

// receive records events. Initial ones, up to the bookmark that ends them, are the list.
func (w *watcher) receive(stream watch.Interface, initial bool) {
	items := map[string]State{}
	for received := range stream.ResultChan() {
		js, ok := received.Object.(*jobsetv1alpha2.JobSet)
		if !ok {
			w.forget(apierrors.FromObject(received.Object))
			return
		}
		event := Event{Type: EventType(received.Type), Object: js.Name, State: stateOf(js)}
		switch {
		case initial && event.Type == Bookmark:
			if js.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				w.record(Event{Type: Listed, State: State{Version: event.State.Version}, Items: items})
				initial = false
			}
		case initial && event.Type == Deleted:
			delete(items, js.Name)
		case initial:
			items[js.Name] = event.State
		default:
			w.record(event)
		}
	}
}

func (w *watcher) record(event Event) {
	if event.Type == Bookmark {
		event.Object, event.State = "", State{Version: event.State.Version}
	}
	event.At, event.Connection = w.now(), w.Connections
	w.Events = append(w.Events, event)
	w.version = event.State.Version
	w.last.Store(w.version)
}
