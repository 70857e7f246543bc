// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop runs the objects of any kind.
//
// A Loop observes an object and its children in caches, lets the kind decide, answers what the decision asks for until it
// asks for nothing, claims what the plan needs, applies the plan, and finishes. It knows when caches lag, when an object is
// gone or is not to be touched, and in which order a status is stored and events are reported. A Kind does everything else.
package loop

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Object is an object that has children.
type Object interface {
	comparable
	runtime.Object
	metav1.Object
}

// Loop runs the objects of one kind. Kind says what the types are.
type Loop[O Object, S, P, R any] struct {
	// Host is what the writers of children share.
	Host *children.Host
	// Kind decides about the objects, and knows their children.
	Kind Kind[O, S, P, R]
	// GVK is the group, version and kind of the objects, and Resource the resource under which own writes are remembered.
	GVK      schema.GroupVersionKind
	Resource string
	// Client returns a client of the objects in a namespace.
	Client func(namespace string) children.OwnerClient[O]
	// Recorder sends events about the objects.
	Recorder events.EventRecorder
	// Outdated returns whether an object is left alone because it is older than its namespace; nil if none is.
	Outdated func(ctx context.Context, owner O) (bool, error)
}

// Sync brings one object to where it should be, as far as that is possible now. It is a queue.SyncFunc.
func (l *Loop[O, S, P, R]) Sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	if held, err := l.outdated(ctx, key); held || err != nil {
		return l.Host.Due(key, queue.Due{}, err), err
	}
	seen, p, wait, err := l.decided(ctx, key)
	if seen.obs == nil || err != nil {
		return l.Host.Due(key, queue.Caches(wait), err), err
	}
	results, err := l.apply(ctx, key, seen, p)
	out := l.Kind.Conclude(seen.obs, p, results)
	finished := l.Finish(ctx, out)
	// A status that is to be stored is not stored: without an answer, the next sync would be like this one.
	out.Due.Continue = out.Due.Continue && finished == nil
	err = children.FirstErrors(err, finished)
	return l.Host.Due(key, out.Due, err), err
}

// Decided observes an object as Observe does, and returns the observation and the plan made on it, which asks for nothing.
func (l *Loop[O, S, P, R]) Decided(ctx context.Context, key cache.ObjectName) (*S, P, time.Duration, error) {
	seen, p, wait, err := l.decided(ctx, key)
	return seen.obs, p, wait, err
}

// observation is what a decision is made on, and the object as it was then.
type observation[O, S any] struct {
	owner O
	obs   *S
}

func (l *Loop[O, S, P, R]) decided(ctx context.Context, key cache.ObjectName) (seen observation[O, S], p P, wait time.Duration, err error) {
	seen, wait, err = l.observe(ctx, key)
	if seen.obs == nil || err != nil {
		return observation[O, S]{}, p, wait, err
	}
	decided, lags, err := l.claim(ctx, key, seen.obs)
	if lags || err != nil {
		return observation[O, S]{}, p, lagRetry(lags), err
	}
	return seen, decided, 0, nil
}

// claim decides, and claims what the plan needs. It returns true if the plan waits for caches.
func (l *Loop[O, S, P, R]) claim(ctx context.Context, key cache.ObjectName, obs *S) (p P, lags bool, err error) {
	if p, err = l.ask(ctx, key, obs); err != nil || l.Kind.Lags(p) {
		return p, err == nil, err
	}
	if again, err := l.Kind.Claim(ctx, obs, p); err != nil || !again {
		return p, false, err
	}
	p, err = l.ask(ctx, key, obs)
	return p, err == nil && l.Kind.Lags(p), err
}

// apply writes children for as long as the cache has the object as it was observed.
func (l *Loop[O, S, P, R]) apply(ctx context.Context, key cache.ObjectName, seen observation[O, S], p P) (R, error) {
	ctx, end := children.While(ctx, func() bool { return l.unchanged(key, seen.owner) })
	defer end()
	return l.Kind.Apply(ctx, seen.obs, p)
}

// unchanged returns whether the cache has an object that asks for the same children as it was observed, as far as is known.
func (l *Loop[O, S, P, R]) unchanged(key cache.ObjectName, observed O) bool {
	var none O
	now, err := l.Kind.Owner(key)
	switch {
	case err != nil, now == observed:
		return true
	case now == none:
		return false
	}
	return now.GetUID() == observed.GetUID() && now.GetGeneration() == observed.GetGeneration() &&
		(now.GetDeletionTimestamp() == nil) == (observed.GetDeletionTimestamp() == nil) && !unreadable.Is(now) &&
		!l.Kind.Moved(observed, now)
}

// maxRounds is how often a decision is made once more because it has asked for something.
const maxRounds = 10

// ask decides, and answers what the decision asks for, until it asks for nothing. Each round must ask for something else
// than those before: an answer says also that something could not be obtained.
func (l *Loop[O, S, P, R]) ask(ctx context.Context, key cache.ObjectName, obs *S) (P, error) {
	p := l.Kind.Decide(*obs)
	asked := sets.New[string]()
	for range maxRounds {
		questions := l.Kind.Questions(p)
		if len(questions) == 0 {
			return p, nil
		}
		if asked.HasAny(questions...) {
			return p, fmt.Errorf("deciding about %s %s: asked twice for one of %q", l.noun(), key, questions)
		}
		asked.Insert(questions...)
		if err := l.Kind.Answer(ctx, obs, p); err != nil {
			return p, err
		}
		p = l.Kind.Decide(*obs)
	}
	return p, fmt.Errorf("deciding about %s %s: asked in more than %d rounds", l.noun(), key, maxRounds)
}

// outdated returns whether an object is left alone because it is older than its namespace.
func (l *Loop[O, S, P, R]) outdated(ctx context.Context, key cache.ObjectName) (bool, error) {
	if l.Outdated == nil {
		return false, nil
	}
	var none O
	owner, err := l.Kind.Owner(key)
	if owner == none || err != nil {
		return false, err
	}
	return l.Outdated(ctx, owner)
}

// HoldOutdated has the Loop leave objects alone that are older than their namespace, and say so in their conditions. The
// namespace matters to objects that are run; nil if all are.
func (l *Loop[O, S, P, R]) HoldOutdated(watch *namespaces.Watch, conditions func(O) *[]metav1.Condition, run func(O) bool) {
	l.Outdated = func(ctx context.Context, owner O) (bool, error) {
		if run != nil && !run(owner) {
			return false, nil
		}
		return namespaces.Hold(ctx, watch, l.Host, l.Client(owner.GetNamespace()), l.Resource, l.Recorder, owner, conditions)
	}
}

// Observe returns what a decision about an object is made on, as the caches have it. It returns nil for an object that
// is gone or cannot be read, and nil with a time to wait while the caches do not show what is known to be there.
func (l *Loop[O, S, P, R]) Observe(ctx context.Context, key cache.ObjectName) (*S, time.Duration, error) {
	seen, wait, err := l.observe(ctx, key)
	return seen.obs, wait, err
}

func (l *Loop[O, S, P, R]) observe(ctx context.Context, key cache.ObjectName) (none observation[O, S], _ time.Duration, _ error) {
	// What was read before the question could be older than the answer.
	if !l.Host.Consistency.VersionsShown(key) {
		return none, queue.LagRetry, nil
	}
	owner, err := l.present(ctx, key)
	var gone O
	if owner == gone || err != nil {
		return none, 0, err
	}
	if waits, err := l.Kind.Waits(ctx, key, owner); waits || err != nil {
		return none, lagRetry(waits), err
	}
	obs, owned, err := l.Kind.Children(ctx, key, owner)
	if err != nil {
		return none, 0, err
	}
	children.DenialsOf(l.Host).Shown(owner, owned)
	if !l.Host.Consistency.DeletionsShown(key, owned) {
		return none, queue.LagRetry, nil
	}
	if lags, err := l.Kind.Complete(ctx, key, obs); lags || err != nil {
		return none, lagRetry(lags), err
	}
	return observation[O, S]{owner, obs}, 0, nil
}

// lagRetry is when to look again at an object for which caches may lag.
func lagRetry(lags bool) time.Duration {
	if lags {
		return queue.LagRetry
	}
	return 0
}

// present returns an object; nil if it is gone, or if nothing is known of what it wants. Then its children stay as they are.
func (l *Loop[O, S, P, R]) present(ctx context.Context, key cache.ObjectName) (none O, err error) {
	owner, err := l.Kind.Owner(key)
	switch {
	case err != nil:
		return none, err
	case owner == none:
		l.Forget(key)
	case !unreadable.Is(owner):
		return owner, nil
	}
	return none, l.Kind.Absent(ctx, key)
}

// Forget drops what is remembered about an object that is gone.
func (l *Loop[O, S, P, R]) Forget(key cache.ObjectName) {
	l.Host.Forget(key)
	l.Kind.Forgotten(key)
}
