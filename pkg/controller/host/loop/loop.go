// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop runs the objects of any kind.
//
// A Loop observes an object and its children in caches, lets the kind decide, answers what the decision asks for until it
// asks for nothing, applies the plan, and finishes. It knows when caches lag, when an object is gone or is not to be
// touched, and in which order a status is stored and events are reported. A kind gives it functions for everything else.
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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
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

// Loop runs the objects of one kind. O is their type; S is what is observed of one of them, P is a plan, and R are the
// results of its writes.
type Loop[O Object, S, P, R any] struct {
	// Host is what the writers of children share.
	Host *children.Host
	// Kind is the kind of the objects, and Resource the one under which own writes are remembered.
	Kind     schema.GroupVersionKind
	Resource string
	// Client returns a client of the objects in a namespace.
	Client func(namespace string) children.OwnerClient[O]
	// Recorder sends events about the objects.
	Recorder events.EventRecorder

	// Owner returns an object from the cache; nil if there is none.
	Owner func(key cache.ObjectName) (O, error)
	// Outdated returns whether an object is left alone because it is older than its namespace; nil if none is.
	Outdated func(ctx context.Context, owner O) (bool, error)
	// Forgotten is called for an object that is gone, beside Host.Forget; it may be nil.
	Forgotten func(key cache.ObjectName)
	// Absent does what is left to do for an object that is gone or cannot be read; nil if that is nothing.
	Absent func(ctx context.Context, key cache.ObjectName) error

	// Waits returns whether the object waits until caches show what they are known to lack; nil if that never happens.
	Waits func(ctx context.Context, key cache.ObjectName, owner O) (bool, error)
	// Children returns the beginning of an observation, and the children whose deletions it must show.
	Children func(ctx context.Context, key cache.ObjectName, owner O) (*S, []consistency.Child, error)
	// Complete adds the rest to an observation. It returns true if caches lag behind what is known otherwise.
	Complete func(ctx context.Context, key cache.ObjectName, obs *S) (lags bool, err error)
	// Decide returns what to do. It is a pure function.
	Decide func(S) P
	// Questions names what a plan asks for, because the decision depends on it and the observation does not have it; none
	// for a plan that can be applied. Answer adds all of that to the observation. Both are nil for a kind whose decisions
	// ask for nothing.
	Questions func(P) []string
	Answer    func(ctx context.Context, obs *S, p P) error
	// Apply writes children, and decides nothing.
	Apply func(ctx context.Context, obs *S, p P) (R, error)
	// Conclude notes what is remembered whatever becomes of the status, and returns what is left to do.
	Conclude func(obs *S, p P, results R) Outcome[O]
}

// Sync brings one object to where it should be, as far as that is possible now. It is a queue.SyncFunc.
func (l *Loop[O, S, P, R]) Sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	if held, err := l.outdated(ctx, key); held || err != nil {
		return queue.Due{}, err
	}
	obs, p, wait, err := l.Decided(ctx, key)
	if obs == nil || err != nil {
		return queue.Caches(wait), err
	}
	results, err := l.Apply(ctx, obs, p)
	out := l.Conclude(obs, p, results)
	err = children.FirstErrors(err, l.Finish(ctx, out))
	return l.Host.Due(out.Due, err), err
}

// Decided observes an object as Observe does, and returns the observation and the plan made on it, which asks for nothing.
func (l *Loop[O, S, P, R]) Decided(ctx context.Context, key cache.ObjectName) (*S, P, time.Duration, error) {
	var none P
	obs, wait, err := l.Observe(ctx, key)
	if obs == nil || err != nil {
		return nil, none, wait, err
	}
	p, err := l.ask(ctx, key, obs)
	if err != nil {
		return nil, none, 0, err
	}
	return obs, p, 0, nil
}

// maxRounds is how often a decision is made once more because it has asked for something.
const maxRounds = 10

// ask decides, and answers what the decision asks for, until it asks for nothing. Each round must ask for something else
// than those before: an answer says also that something could not be obtained.
func (l *Loop[O, S, P, R]) ask(ctx context.Context, key cache.ObjectName, obs *S) (P, error) {
	p := l.Decide(*obs)
	if l.Answer == nil {
		return p, nil
	}
	asked := sets.New[string]()
	for range maxRounds {
		questions := l.Questions(p)
		if len(questions) == 0 {
			return p, nil
		}
		if asked.HasAny(questions...) {
			return p, fmt.Errorf("deciding about %s %s: asked twice for one of %q", l.noun(), key, questions)
		}
		asked.Insert(questions...)
		if err := l.Answer(ctx, obs, p); err != nil {
			return p, err
		}
		p = l.Decide(*obs)
	}
	return p, fmt.Errorf("deciding about %s %s: asked in more than %d rounds", l.noun(), key, maxRounds)
}

// outdated returns whether an object is left alone because it is older than its namespace.
func (l *Loop[O, S, P, R]) outdated(ctx context.Context, key cache.ObjectName) (bool, error) {
	if l.Outdated == nil {
		return false, nil
	}
	var none O
	owner, err := l.Owner(key)
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
		return namespaces.Hold(ctx, watch, l.Client(owner.GetNamespace()), l.Recorder, owner, conditions)
	}
}

// Observe returns what a decision about an object is made on, as the caches have it. It returns nil for an object that
// is gone or cannot be read, and nil with a time to wait while the caches do not show what is known to be there.
func (l *Loop[O, S, P, R]) Observe(ctx context.Context, key cache.ObjectName) (*S, time.Duration, error) {
	// What was read before the question could be older than the answer.
	if !l.Host.Consistency.VersionsShown(key) {
		return nil, queue.LagRetry, nil
	}
	owner, err := l.present(ctx, key)
	var none O
	if owner == none || err != nil {
		return nil, 0, err
	}
	if l.Waits != nil {
		if waits, err := l.Waits(ctx, key, owner); waits || err != nil {
			return nil, lagRetry(waits), err
		}
	}
	obs, owned, err := l.Children(ctx, key, owner)
	if err != nil {
		return nil, 0, err
	}
	if !l.Host.Consistency.DeletionsShown(key, owned) {
		return nil, queue.LagRetry, nil
	}
	if lags, err := l.Complete(ctx, key, obs); lags || err != nil {
		return nil, lagRetry(lags), err
	}
	return obs, 0, nil
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
	owner, err := l.Owner(key)
	switch {
	case err != nil:
		return none, err
	case owner == none:
		l.Forget(key)
	case !unreadable.Is(owner):
		return owner, nil
	}
	if l.Absent != nil {
		err = l.Absent(ctx, key)
	}
	return none, err
}

// Forget drops what is remembered about an object that is gone.
func (l *Loop[O, S, P, R]) Forget(key cache.ObjectName) {
	l.Host.Forget(key)
	if l.Forgotten != nil {
		l.Forgotten(key)
	}
}
