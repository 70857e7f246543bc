// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What an API server answers when it does not do what it was asked for.
var (
	anyJob      = schema.GroupResource{Group: "batch", Resource: "jobs"}
	errConflict = apierrors.NewConflict(anyJob, "j", errors.New("changed"))
	errExists   = apierrors.NewAlreadyExists(anyJob, "j")
	errNotFound = apierrors.NewNotFound(anyJob, "j")
	errInvalid  = apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil)
	errServer   = apierrors.NewInternalError(errors.New("broken"))
	errDenied   = apierrors.NewForbidden(anyJob, "j", errors.New("denied by a policy that looks at the name"))
	// What a client says when there is no answer.
	errTimeout = errors.New("timeout")
	errDead    = errors.New("the controller is dead")
)

// versions counts the writes of one API server.
type versions struct{ last int }

func (v *versions) next() int { v.last++; return v.last }

// store holds one resource of an API server. Stored objects are never changed, but replaced.
type store[T metav1.Object] struct {
	versions *versions
	objects  []T
	// log is what watches tell: every change in its order.
	log []change[T]
}

type change[T metav1.Object] struct {
	version int
	object  T
	gone    bool
}

func (s *store[T]) index(name string) int {
	for i, object := range s.objects {
		if object.GetName() == name {
			return i
		}
	}
	return -1
}

// get returns the object of the name.
func (s *store[T]) get(name string) (object T, found bool) {
	if i := s.index(name); i >= 0 {
		return s.objects[i], true
	}
	return object, false
}

// put stores a new object or a new state of one.
func (s *store[T]) put(object T) {
	version := s.versions.next()
	object.SetResourceVersion(strconv.Itoa(version))
	if i := s.index(object.GetName()); i >= 0 {
		s.objects[i] = object
	} else {
		s.objects = append(s.objects, object)
	}
	s.log = append(s.log, change[T]{version: version, object: object})
}

// remove drops an object for good.
func (s *store[T]) remove(name string) {
	i := s.index(name)
	s.log = append(s.log, change[T]{version: s.versions.next(), object: s.objects[i], gone: true})
	s.objects = append(s.objects[:i], s.objects[i+1:]...)
}

// informer is a cache that follows a store with its own delay.
type informer[T metav1.Object] struct {
	from *store[T]
	// selects tells which objects the cache holds; nil for all.
	selects func(T) bool
	// transform returns what the cache keeps of an object; nil for all.
	transform func(T) T
	// handle is told about every change of the cache.
	handle func(object T, gone bool)

	objects []T
	// next is the place in the log of the first change that the cache has not seen.
	next    int
	version string
}

// list fills the cache with what is stored now, as the first request of a reflector does.
func (c *informer[T]) list() {
	c.objects, c.next, c.version = nil, len(c.from.log), strconv.Itoa(c.from.versions.last)
	for _, object := range c.from.objects {
		if c.selects == nil || c.selects(object) {
			c.objects = append(c.objects, c.kept(object))
		}
	}
}

func (c *informer[T]) kept(object T) T {
	if c.transform == nil {
		return object
	}
	return c.transform(object)
}

// behind is the number of changes that the cache has not seen.
func (c *informer[T]) behind() int { return len(c.from.log) - c.next }

// advance shows the cache its next change.
func (c *informer[T]) advance() {
	event := c.from.log[c.next]
	c.next++
	at := -1
	for i, object := range c.objects {
		if object.GetName() == event.object.GetName() {
			at = i
		}
	}
	gone := event.gone || c.selects != nil && !c.selects(event.object)
	switch {
	case gone && at < 0:
		return
	case gone:
		old := c.objects[at]
		c.objects = append(c.objects[:at], c.objects[at+1:]...)
		c.version = strconv.Itoa(event.version)
		c.handle(old, true)
		return
	}
	object := c.kept(event.object)
	if at < 0 {
		c.objects = append(c.objects, object)
	} else {
		c.objects[at] = object
	}
	c.version = strconv.Itoa(event.version)
	c.handle(object, false)
}

// LastStoreSyncResourceVersion is what the consistency store asks for.
func (c *informer[T]) LastStoreSyncResourceVersion() string { return c.version }

func (c *informer[T]) get(name string) (object T, found bool) {
	for _, object := range c.objects {
		if object.GetName() == name {
			return object, true
		}
	}
	return object, false
}

// number returns the version of an object for comparison.
func number(version string) int {
	n, err := strconv.Atoi(version)
	if err != nil {
		return 0
	}
	return n
}

// newUID returns the UID of the nth object of a kind.
func newUID(kind string, n int) types.UID { return types.UID(kind + "-" + strconv.Itoa(n)) }
