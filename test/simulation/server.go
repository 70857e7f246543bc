// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Versions counts the writes of one API server.
type Versions struct{ Last int }

// Store holds one resource of an API server, in one namespace. Stored objects are never changed, but replaced.
type Store[T metav1.Object] struct {
	Versions *Versions
	Objects  []T
	// log is what watches show: every change in its order.
	log []change[T]
}

type change[T metav1.Object] struct {
	version int
	object  T
	gone    bool
}

func (s *Store[T]) index(name string) int {
	return slices.IndexFunc(s.Objects, func(object T) bool { return object.GetName() == name })
}

// Get returns the object of the name.
func (s *Store[T]) Get(name string) (object T, found bool) {
	if i := s.index(name); i >= 0 {
		return s.Objects[i], true
	}
	return object, false
}

// Put stores a new object or a new state of one.
func (s *Store[T]) Put(object T) {
	s.Versions.Last++
	object.SetResourceVersion(strconv.Itoa(s.Versions.Last))
	if i := s.index(object.GetName()); i >= 0 {
		s.Objects[i] = object
	} else {
		s.Objects = append(s.Objects, object)
	}
	s.log = append(s.log, change[T]{version: s.Versions.Last, object: object})
}

// Remove drops an object permanently.
func (s *Store[T]) Remove(name string) {
	i := s.index(name)
	s.Versions.Last++
	s.log = append(s.log, change[T]{version: s.Versions.Last, object: s.Objects[i], gone: true})
	s.Objects = slices.Delete(slices.Clone(s.Objects), i, i+1)
}

// States returns all states that objects have had, in their order.
func (s *Store[T]) States() (all []T) {
	for _, c := range s.log {
		if !c.gone {
			all = append(all, c.object)
		}
	}
	return all
}

// Informer is a cache that follows a store with its own delay.
type Informer[T metav1.Object] struct {
	From *Store[T]
	// Selects says which objects the cache holds; nil for all.
	Selects func(T) bool
	// Transform returns what the cache keeps of an object; nil for all of it.
	Transform func(T) T
	// Handle is called for every change of the cache, and Before, unless it is nil, with an object that is about to be replaced.
	Handle func(object T, gone bool)
	Before func(object T)

	Objects []T
	// next is the place in the log of the first change that the cache has not seen.
	next    int
	version string
}

// List fills the cache with what is stored now, as the first request of a reflector does.
func (c *Informer[T]) List() {
	c.Objects, c.next, c.version = nil, len(c.From.log), strconv.Itoa(c.From.Versions.Last)
	for _, object := range c.From.Objects {
		if c.Selects == nil || c.Selects(object) {
			c.Objects = append(c.Objects, c.kept(object))
		}
	}
}

func (c *Informer[T]) kept(object T) T {
	if c.Transform == nil {
		return object
	}
	return c.Transform(object)
}

// Snapshot returns a cache that shows what this one shows now.
func (c *Informer[T]) Snapshot() Informer[T] {
	out := *c
	out.Objects = slices.Clone(c.Objects)
	return out
}

// Behind is the number of changes that the cache has not seen.
func (c *Informer[T]) Behind() int { return len(c.From.log) - c.next }

// Advance shows the cache its next change.
func (c *Informer[T]) Advance() {
	event := c.From.log[c.next]
	object := c.kept(event.object)
	c.next++
	at := slices.IndexFunc(c.Objects, func(object T) bool { return object.GetName() == event.object.GetName() })
	gone := event.gone || c.Selects != nil && !c.Selects(event.object)
	switch {
	case gone && at < 0:
		return
	case gone:
		object = c.Objects[at] // a watch shows it as it was last
		c.Objects = slices.Delete(slices.Clone(c.Objects), at, at+1)
	case at < 0:
		c.Objects = append(c.Objects, object)
	default:
		if c.Before != nil {
			c.Before(c.Objects[at])
		}
		c.Objects[at] = object
	}
	c.version = strconv.Itoa(event.version)
	c.Handle(object, gone)
}

// LastStoreSyncResourceVersion is what a consistency store asks for.
func (c *Informer[T]) LastStoreSyncResourceVersion() string { return c.version }

// Get returns the cached object of the name.
func (c *Informer[T]) Get(name string) (object T, found bool) {
	for _, object := range c.Objects {
		if object.GetName() == name {
			return object, true
		}
	}
	return object, false
}
