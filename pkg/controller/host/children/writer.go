// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// maxTaken is the number of names of others that are remembered. More are asked for again.
const maxTaken = 10_000

// Client is what a Writer needs of a client of one kind in one namespace. The typed clients of client-go have it.
type Client[T metav1.Object] interface {
	Create(ctx context.Context, child T, options metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, options metav1.PatchOptions,
		subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// In returns the clients of one kind for any namespace.
func In[T metav1.Object, C Client[T]](of func(namespace string) C) func(namespace string) Client[T] {
	return func(namespace string) Client[T] { return of(namespace) }
}

// Runner makes n requests for one owner, and returns their first errors. The failure of one keeps no other from being made.
// A SlowStart is one.
type Runner interface {
	Do(ctx context.Context, owner cache.ObjectName, n int, do func(ctx context.Context, i int) error) error
	Forget(owner cache.ObjectName)
}

// Consistency remembers own writes until the caches show them. A consistency.ConsistencyStore does.
type Consistency interface {
	Wrote(owner cache.ObjectName, resource, version string)
	Deleted(owner cache.ObjectName, child types.UID)
	VersionsShown(owner cache.ObjectName) bool
	DeletionsShown(owner cache.ObjectName, children []consistency.Child) bool
	Forget(owner cache.ObjectName)
}

// Clock returns the time.
type Clock interface{ Now() time.Time }

// Host is what the Writers of a controller share.
type Host struct {
	// Runner makes requests.
	Runner Runner
	// Consistency remembers own writes.
	Consistency Consistency
	// Clock is for what is remembered for some time.
	Clock Clock
	// Denials remember what was denied; nil for those of a new controller.
	Denials *Denials
	// Statuses know which statuses of owners another party changes back; nil for the knowledge of a new controller.
	Statuses *StatusGuard
	// Shuffle returns the numbers from 0 to n-1 in any order. When the time of a pass is over before all children have had
	// their turn, those that take long must not come first in the next pass again.
	Shuffle func(n int) []int

	// notes are all Notes of the Host.
	notes []interface{ Forget(owner cache.ObjectName) }
}

// NewHost returns the Host of a controller that makes up to parallel requests for an owner at a time. Caches show versions, by resource.
func NewHost(c clock.PassiveClock, parallel int, caches map[string]consistency.Versioned) *Host {
	return &Host{
		Runner: newSlowStart(firstRequests, parallel), Consistency: consistency.NewConsistencyStore(c, caches), Clock: c, Shuffle: rand.Perm,
	}
}

// Forget drops everything that is remembered about an owner that is gone.
func (h *Host) Forget(owner cache.ObjectName) {
	h.Consistency.Forget(owner)
	h.Runner.Forget(owner)
	if h.Denials != nil {
		h.Denials.Forget(owner)
	}
	for _, n := range h.notes {
		n.Forget(owner)
	}
}

// Writer writes children of one kind.
type Writer[T metav1.Object] struct {
	host *Host
	// kind and resource name the kind to the API and to Consistency; noun names it in errors.
	kind     schema.GroupKind
	resource string
	noun     string
	client   func(namespace string) Client[T]
	// taken are names that other objects have. The API is asked about each of them only from time to time.
	taken *expiring.LRUExpireCache
	// guard knows which writes another party undoes.
	guard *Guard
	// denials know which requests were denied.
	denials *Denials
}

// NewWriter returns a Writer. The resource is the one under which Consistency knows the kind.
func NewWriter[T metav1.Object](host *Host, kind schema.GroupKind, resource, noun string,
	client func(namespace string) Client[T]) *Writer[T] {
	StatusGuardOf(host)
	return &Writer[T]{
		host: host, kind: kind, resource: resource, noun: noun, client: client,
		taken: expiring.NewLRUExpireCacheWithClock(maxTaken, host.Clock), guard: NewGuard(noun, host.Clock),
		denials: DenialsOf(host),
	}
}

// Ref names one incarnation of a child.
type Ref = plan.Ref

// Create creates one child, and returns it as the API has stored it. The error comes from the API, now or earlier, or is an UndoneError.
func (w *Writer[T]) Create(ctx context.Context, owner metav1.Object, child T) (T, error) {
	return w.createAs(ctx, owner, child, w.creationOf(owner, child), metav1.CreateOptions{})
}

// creationOf names the creation of a child.
func (w *Writer[T]) creationOf(owner, child metav1.Object) Request {
	return Request{Verb: verbCreate, Resource: w.resource, Kind: w.kind, Name: child.GetName(), UID: controllerOf(owner, child)}
}

func (w *Writer[T]) createAs(ctx context.Context, owner metav1.Object, child T, what Request,
	options metav1.CreateOptions) (created T, err error) {
	if err := w.guard.Creating(owner, child); err != nil {
		return child, err
	}
	err = w.denials.Do(owner, what, func() error {
		created, err = w.client(owner.GetNamespace()).Create(ctx, child, options)
		return err
	})
	if err == nil {
		w.host.Consistency.Wrote(cache.MetaObjectToName(owner), w.resource, created.GetResourceVersion())
		w.guard.Created(owner, child)
	}
	return created, err
}

// Get reads a child from the API.
func (w *Writer[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	return w.client(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Delete deletes children in the foreground as Each does, and returns how many requests were accepted. Those that are
// gone count as accepted.
func (w *Writer[T]) Delete(ctx context.Context, owner metav1.Object, refs []Ref) (accepted int, err error) {
	var done atomic.Int64
	err = w.Each(ctx, owner, len(refs), func(ctx context.Context, i int) error {
		ref := refs[i]
		err := w.Removing(owner, ref, func() error {
			return w.client(owner.GetNamespace()).Delete(ctx, ref.Name, Foreground(ref.UID, ""))
		})
		// A conflict means that another child has the name now, or that this one changed meanwhile: the next pass will see.
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s/%s: %w", w.noun, owner.GetNamespace(), ref.Name, err)
		}
		done.Add(1)
		w.host.Consistency.Deleted(cache.MetaObjectToName(owner), ref.UID)
		return nil
	})
	return int(done.Load()), err
}

// Deleting makes a request that deletes a child which another controller creates again by design, unless it was denied and its time has
// not come. Others are deleted by Removing.
func (w *Writer[T]) Deleting(owner metav1.Object, ref Ref, do func() error) error {
	return w.denials.Do(owner, Request{Verb: verbDelete, Resource: w.resource, Kind: w.kind, Name: ref.Name, UID: ref.UID}, func() error {
		w.guard.Deleting(owner.GetNamespace(), ref.Name)
		return do()
	})
}

// Changing makes a request that changes a child, unless a request of the kind was denied and its time has not come.
func (w *Writer[T]) Changing(owner metav1.Object, ref Ref, kind string, do func() error) error {
	return w.denials.Do(owner, w.change(ref, kind), do)
}

// change names a request that changes a child.
func (w *Writer[T]) change(ref Ref, kind string) Request {
	return Request{Verb: verbPatch, Resource: w.resource, Kind: w.kind, Name: ref.Name, UID: ref.UID, Change: kind}
}

// Each does something for each of n children, in any order. Once enough is refused, the rest is left to the next pass: see Attempts.
func (w *Writer[T]) Each(ctx context.Context, owner metav1.Object, n int, do func(ctx context.Context, i int) error) error {
	order := w.host.Shuffle(n)
	return w.InOrder(ctx, owner, n, NewAttempts().each(func(ctx context.Context, i int) error { return do(ctx, order[i]) }))
}

// InOrder does something for each of n children, begun in their order.
func (w *Writer[T]) InOrder(ctx context.Context, owner metav1.Object, n int, do func(ctx context.Context, i int) error) error {
	return w.host.Runner.Do(ctx, cache.MetaObjectToName(owner), n, do)
}

// Guard is for writes of children of the kind that are made without the Writer.
func (w *Writer[T]) Guard() *Guard { return w.guard }

// Foreground asks for a deletion that waits for the dependents, of this very incarnation, and of this version if one is given.
func Foreground(uid types.UID, version string) metav1.DeleteOptions {
	options := metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	return options
}

// Background asks for a deletion of this very incarnation that waits for nothing.
func Background(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &uid}}
}
