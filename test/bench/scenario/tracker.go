// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// pollInterval is how often something is asked for that cannot be watched.
const pollInterval = 500 * time.Millisecond

// sayEvery is how often a wait says what it waits for.
const sayEvery = 30 * time.Second

// tracker knows the present state of all objects of a kind in a namespace, and lets others wait for a state.
type tracker[T metav1.Object] struct {
	timeout time.Duration
	changed chan struct{}
	// log prints what is waited for; it may be nil.
	log func(format string, args ...any)

	mu      sync.Mutex
	objects map[string]T
	// updates is how often an object was seen to change.
	updates int
	shown   func(T)
	gone    func(T)
	// awaited is what objects are waited for to be; matching are the names of those that are.
	awaited  func(T) bool
	matching map[string]bool
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
	t.match(object)
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
	delete(t.matching, object.GetName())
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
	return t.wait(ctx, fmt.Sprintf("until %s", what), n, is, func(matching, all int) bool { return matching == n && all == n })
}

// untilFresh waits until there are at least so many objects with UIDs other than the given ones.
func (t *tracker[T]) untilFresh(ctx context.Context, known map[types.UID]bool, n int) error {
	fresh := func(object T) bool { return !known[object.GetUID()] }
	return t.wait(ctx, fmt.Sprintf("for %d other objects", n), n, fresh, func(matching, _ int) bool { return matching >= n })
}

// untilAny waits until one object is as asked for.
func (t *tracker[T]) untilAny(ctx context.Context, what string, is func(T) bool) error {
	return t.untilSome(ctx, what, 1, is)
}

// untilSome waits until at least n objects are as asked for.
func (t *tracker[T]) untilSome(ctx context.Context, what string, n int, is func(T) bool) error {
	return t.wait(ctx, fmt.Sprintf("until %s", what), n, is, func(matching, _ int) bool { return matching >= n })
}

// wait waits until enough objects match. Each change is looked at once, so that the cost does not grow with the square
// of the number of objects.
func (t *tracker[T]) wait(ctx context.Context, what string, n int, is func(T) bool, enough func(matching, all int) bool) error {
	late, say := time.NewTimer(t.timeout), time.NewTicker(sayEvery)
	defer late.Stop()
	defer say.Stop()
	t.await(is)
	defer t.await(nil)
	for {
		if enough(t.matched()) {
			return nil
		}
		select {
		case <-t.changed:
		case <-say.C:
			if t.log != nil {
				t.log("waiting %s: %s", what, t.state(n))
			}
		case <-late.C:
			return fmt.Errorf("waiting %s: after %v %s", what, t.timeout, t.state(n))
		case <-ctx.Done():
			return fmt.Errorf("waiting %s: %w", what, ctx.Err())
		}
	}
}

// await sets what is waited for; nil for nothing.
func (t *tracker[T]) await(is func(T) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaited, t.matching = is, map[string]bool{}
	for _, object := range t.objects {
		t.match(object)
	}
}

// match notes whether an object is as it is waited for. The lock is held.
func (t *tracker[T]) match(object T) {
	if t.awaited != nil && t.awaited(object) {
		t.matching[object.GetName()] = true
	} else {
		delete(t.matching, object.GetName())
	}
}

// matched returns how many objects are as they are waited for, and how many there are.
func (t *tracker[T]) matched() (matching, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.matching), len(t.objects)
}

// state describes how many of n objects are as they are waited for.
func (t *tracker[T]) state(n int) string {
	matching, all := t.matched()
	return fmt.Sprintf("%d of %d are so, and there are %d%s", matching, n, all, t.missing())
}

// mostMissing is how many objects an error names.
const mostMissing = 3

// missing describes some objects that are not as they are waited for.
func (t *tracker[T]) missing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.objects {
		if !t.matching[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var texts []string
	for _, name := range names[:min(len(names), mostMissing)] {
		texts = append(texts, name+stateOf(t.objects[name]))
	}
	return "; not so: " + strings.Join(texts, ", ")
}

// stateOf describes the numbers of a Job or a JobSet.
func stateOf(object any) string {
	switch o := object.(type) {
	case *batchv1.Job:
		return fmt.Sprintf(" (active %d, ready %d, terminating %d, succeeded %d, failed %d, being deleted: %t)", o.Status.Active, ptr.Deref(o.Status.Ready, 0),
			ptr.Deref(o.Status.Terminating, 0), o.Status.Succeeded, o.Status.Failed, o.DeletionTimestamp != nil)
	case *jobsetv1alpha2.JobSet:
		text := fmt.Sprintf(" (restarts %d", o.Status.Restarts)
		for _, s := range o.Status.ReplicatedJobsStatus[:min(len(o.Status.ReplicatedJobsStatus), mostMissing)] {
			text += fmt.Sprintf("; %s: active %d, ready %d, suspended %d, succeeded %d, failed %d", s.Name, s.Active, s.Ready, s.Suspended, s.Succeeded, s.Failed)
		}
		return text + ")"
	}
	return ""
}
