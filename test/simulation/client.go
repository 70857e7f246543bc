// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// RuleOthers is the rule of every kind about objects of others that have the names of its objects.
const RuleOthers = "nothing of others is touched"

// Object is one that a client can send.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resource is a kind of objects that a Server holds.
type Resource[T Object] struct {
	Store[T]
	World  *World
	Server *Server
	// Kind is its name in the trace and in refusals.
	Kind string
	// Stays returns whether an object that is deleted stays for a while, as pods and those with finalizers do. What ends
	// it removes it. nil means that none does.
	Stays func(T) bool
}

// NewResource returns one without objects.
func NewResource[T Object](w *World, s *Server, kind string) *Resource[T] {
	r := &Resource[T]{Store: Store[T]{Versions: &s.Versions}, World: w, Server: s, Kind: kind}
	w.stores = append(w.stores, r)
	return r
}

// Create stores an object as its server does. Who may not create it is not asked.
func (r *Resource[T]) Create(object T) T {
	object = copied(object)
	object.SetUID(r.World.NewUID(r.Kind))
	object.SetCreationTimestamp(r.Server.Stored(r.World))
	object.SetGeneration(1)
	r.Put(object)
	return object
}

// Change stores a changed copy of an object.
func (r *Resource[T]) Change(object T, change func(T)) T {
	object = copied(object)
	change(object)
	r.Put(object)
	return object
}

func copied[T Object](object T) T { return object.DeepCopyObject().(T) }

// Client sends the requests of a controller about objects of one kind. It is a children.Client.
type Client[T Object] struct {
	*Resource[T]
	Sender *Sender
	// Own returns whether an object is one that the controller may change and delete.
	Own func(T) bool
	// Created, Changed and Deleted are told what the server has done; nil if nothing needs to know. For patches, the subresource is the
	// subresource of the request.
	Created func(T)
	Changed func(before, after T, subresource string)
	Deleted func(object T, propagation metav1.DeletionPropagation)
	// Invalid returns why a server refuses a state of an object; nil means that it takes all.
	Invalid func(before, after T) error
}

// refusal returns why the server does not do what a verb asks for; nil if it does.
func (c Client[T]) refusal(verb string) error { return c.Server.Refusals[verb+" "+c.Kind] }

// denial is refusal for a request that changes an object, and notes it.
func (c Client[T]) denial(verb string, object metav1.Object) error {
	err := c.refusal(verb)
	c.Sender.Denied(Request(verb, c.Kind, object), err)
	return err
}

// Create implements children.Client.
func (c Client[T]) Create(_ context.Context, wanted T, _ metav1.CreateOptions) (T, error) {
	return Send(c.Sender, wanted, func(bool) (T, error) {
		if err := c.denial("create", wanted); err != nil {
			return wanted, err
		}
		if _, taken := c.Store.Get(wanted.GetName()); taken {
			return wanted, ErrExists
		}
		object := c.Resource.Create(wanted)
		c.World.Note("  creates %s %s (%s)", c.Kind, object.GetName(), object.GetUID())
		if c.Created != nil {
			c.Created(object)
		}
		return object, nil
	})
}

// Get implements children.Client.
func (c Client[T]) Get(_ context.Context, name string, _ metav1.GetOptions) (T, error) {
	return Read(c.Sender, func() (T, error) {
		object, found := c.Store.Get(name)
		switch err := c.refusal("get"); {
		case err != nil:
			return object, err
		case !found:
			return object, ErrNotFound
		}
		return copied(object), nil
	})
}

// Update replaces an object but for its status, if the version is the current one.
func (c Client[T]) Update(_ context.Context, wanted T, _ metav1.UpdateOptions) (T, error) {
	return c.update(wanted, "update", "", func(T) T { return copied(wanted) })
}

// UpdateStatus replaces what the function takes from the wanted object, if the version is the current one.
func (c Client[T]) UpdateStatus(wanted T, take func(into, from T)) (T, error) {
	return c.update(wanted, "update status", "status", func(live T) T {
		next := copied(live)
		take(next, wanted)
		return next
	})
}

func (c Client[T]) update(wanted T, verb, subresource string, next func(live T) T) (T, error) {
	return Send(c.Sender, wanted, func(bool) (T, error) {
		live, found := c.Store.Get(wanted.GetName())
		err := c.refusal("update")
		c.Sender.Denied(Request(verb, c.Kind, wanted), err)
		switch {
		case err != nil:
			return wanted, err
		case !found:
			return wanted, ErrNotFound
		case wanted.GetUID() != "" && wanted.GetUID() != live.GetUID(), wanted.GetResourceVersion() != "" && wanted.GetResourceVersion() != live.GetResourceVersion():
			c.World.Seen["conflicts"]++
			return wanted, ErrConflict
		}
		return c.put("updates", live, next(live), subresource)
	})
}

// Patch implements children.Client for merges and steps. Whoever applies needs a client of its own.
func (c Client[T]) Patch(_ context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, subresources ...string) (T, error) {
	none, found := c.Store.Get(name)
	if !found { // a controller that was deposed is answered all the same
		none = reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	}
	subresource := append(subresources, "")[0]
	return Send(c.Sender, none, func(bool) (T, error) {
		live, found := c.Store.Get(name)
		switch err := c.denial("patch", &metav1.ObjectMeta{Name: name}); {
		case err != nil:
			return none, err
		case !found:
			return none, ErrNotFound
		}
		next, err := merged(live, kind, body)
		switch {
		case err != nil:
			return none, err
		case next.GetUID() != live.GetUID(), next.GetResourceVersion() != live.GetResourceVersion():
			c.World.Seen["conflicts"]++
			return none, ErrConflict
		}
		return c.put("patches", live, next, subresource)
	})
}

// put stores the next state of an object that the controller changes.
func (c Client[T]) put(verb string, live, next T, subresource string) (T, error) {
	if c.Own != nil && !c.Own(live) {
		c.World.Fail(RuleOthers, "the controller %s %s %s", verb, c.Kind, live.GetName())
	}
	if c.Invalid != nil {
		if err := c.Invalid(live, next); err != nil {
			return live, err
		}
	}
	c.World.Note("  %s %s %s %s", verb, c.Kind, next.GetName(), subresource)
	if c.Changed != nil {
		c.Changed(live, next, subresource)
	}
	c.Put(next)
	return next, nil
}

// merged returns an object with a patch.
func merged[T Object](live T, kind types.PatchType, body []byte) (T, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return live, err
	}
	var after []byte
	switch kind {
	case types.JSONPatchType:
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = steps.Apply(before)
		}
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, body, live)
	default:
		panic("a patch that this client does not know: " + string(kind))
	}
	if err != nil {
		return live, err
	}
	next := reflect.New(reflect.TypeOf(live).Elem()).Interface().(T)
	return next, json.Unmarshal(after, next)
}

// Delete implements children.Client.
func (c Client[T]) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	var none T
	_, err := Send(c.Sender, none, func(bool) (T, error) {
		object, found := c.Store.Get(name)
		precondition := ptr.Deref(options.Preconditions, metav1.Preconditions{})
		switch err := c.denial("delete", &metav1.ObjectMeta{Name: name}); {
		case err != nil:
			return none, err
		case !found:
			return none, ErrNotFound
		case object.GetUID() != ptr.Deref(precondition.UID, object.GetUID()), object.GetResourceVersion() != ptr.Deref(precondition.ResourceVersion, object.GetResourceVersion()):
			return none, ErrConflict
		case c.Own != nil && !c.Own(object):
			c.World.Fail(RuleOthers, "the controller deletes %s %s", c.Kind, name)
		}
		propagation := ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground)
		c.World.Note("  deletes %s %s (%s), %s", c.Kind, name, object.GetUID(), propagation)
		if c.Deleted != nil {
			c.Deleted(object, propagation)
		}
		c.Resource.Delete(object, propagation)
		return none, nil
	})
	return err
}

// Delete deletes an object as its server does.
func (r *Resource[T]) Delete(object T, propagation metav1.DeletionPropagation) {
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents,
	}[propagation]
	if finalizer == "" && len(object.GetFinalizers()) == 0 && (r.Stays == nil || !r.Stays(object)) {
		r.Remove(object.GetName())
		return
	}
	r.Change(object, func(next T) {
		if next.GetDeletionTimestamp() == nil {
			next.SetDeletionTimestamp(ptr.To(r.Server.Stored(r.World)))
			next.SetGeneration(next.GetGeneration() + 1)
		}
		if finalizer != "" && !slices.Contains(next.GetFinalizers(), finalizer) {
			next.SetFinalizers(append(next.GetFinalizers(), finalizer))
		}
	})
}
