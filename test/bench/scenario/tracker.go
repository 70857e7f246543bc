// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// settleEvery is how often something is asked for that cannot be watched.
const settleEvery = 500 * time.Millisecond

// tracker knows the present state of all objects of a kind in a namespace, and lets others wait for a state.
type tracker[T metav1.Object] struct {
	timeout time.Duration
	changed chan struct{}

	mu      sync.Mutex
	objects map[string]T
	// updates is how often an object was seen to change.
	updates int
	shown   func(T)
	gone    func(T)
}

func newTracker[T metav1.Object](ctx context.Context, informer cache.SharedIndexInformer, timeout time.Duration) (*tracker[T], error) {
	t := &tracker[T]{timeout: timeout, changed: make(chan struct{}, 1), objects: map[string]T{}}
	handle := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { t.seen(obj.(T)) },
		UpdateFunc: func(old, obj any) {
			if old.(T).GetResourceVersion() != obj.(T).GetResourceVersion() {
				t.countUpdate()
			}
			t.seen(obj.(T))
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			t.lost(obj.(T))
		},
	}
	if _, err := informer.AddEventHandler(handle); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	syncing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if !cache.WaitForCacheSync(syncing.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("no answer within %v", timeout)
	}
	return t, nil
}

func (t *tracker[T]) seen(object T) {
	t.mu.Lock()
	t.objects[object.GetName()] = object
	shown := t.shown
	t.mu.Unlock()
	if shown != nil {
		shown(object)
	}
	t.notify()
}

func (t *tracker[T]) countUpdate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updates++
}

// seenUpdates returns how often objects have changed since the tracker began.
func (t *tracker[T]) seenUpdates() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.updates
}

func (t *tracker[T]) lost(object T) {
	t.mu.Lock()
	delete(t.objects, object.GetName())
	gone := t.gone
	t.mu.Unlock()
	if gone != nil {
		gone(object)
	}
	t.notify()
}

func (t *tracker[T]) notify() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// onShown sets what is called for objects that appear or change from now on.
func (t *tracker[T]) onShown(call func(T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = call
}

// onGone sets what is called for objects that vanish from now on.
func (t *tracker[T]) onGone(call func(T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = call
}

// count returns how many of the objects are as asked for, and how many there are.
func (t *tracker[T]) count(is func(T) bool) (matching, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, object := range t.objects {
		if is(object) {
			matching++
		}
	}
	return matching, len(t.objects)
}

// uids returns the UIDs of all objects.
func (t *tracker[T]) uids() map[types.UID]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	uids := map[types.UID]bool{}
	for _, object := range t.objects {
		uids[object.GetUID()] = true
	}
	return uids
}

// until waits until there are exactly n objects and all of them are as asked for. One at a time may wait.
func (t *tracker[T]) until(ctx context.Context, what string, n int, is func(T) bool) error {
	late := time.NewTimer(t.timeout)
	defer late.Stop()
	for {
		matching, all := t.count(is)
		if matching == n && all == n {
			return nil
		}
		select {
		case <-t.changed:
		case <-late.C:
			return fmt.Errorf("waiting until %s: after %v %d of %d are so", what, t.timeout, matching, n)
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
	}
}

// untilFresh waits until at least so many objects are others than those of the UIDs.
func (t *tracker[T]) untilFresh(ctx context.Context, known map[types.UID]bool, n int) error {
	late := time.NewTimer(t.timeout)
	defer late.Stop()
	for {
		fresh, _ := t.count(func(object T) bool { return !known[object.GetUID()] })
		if fresh >= n {
			return nil
		}
		select {
		case <-t.changed:
		case <-late.C:
			return fmt.Errorf("waiting for %d other objects: after %v there are %d", n, t.timeout, fresh)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d other objects: %w", n, ctx.Err())
		}
	}
}

// untilAny waits until one object is as asked for.
func (t *tracker[T]) untilAny(ctx context.Context, what string, is func(T) bool) error {
	return t.untilSome(ctx, what, 1, is)
}

// untilSome waits until at least n objects are as asked for.
func (t *tracker[T]) untilSome(ctx context.Context, what string, n int, is func(T) bool) error {
	late := time.NewTimer(t.timeout)
	defer late.Stop()
	for {
		matching, _ := t.count(is)
		if matching >= n {
			return nil
		}
		select {
		case <-t.changed:
		case <-late.C:
			return fmt.Errorf("waiting until %s: after %v %d of %d are so", what, t.timeout, matching, n)
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
	}
}
