// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Object is an object that cannot be read.
type Object struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// Key is its key in etcd, and Cause why it cannot be read.
	Key, Cause string
}

// name returns namespace/name.
func (o Object) name() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// maxObjects is how many objects are remembered. More are not counted: what is wrong then is not an object.
const maxObjects = 10_000

// Objects are the objects that the server has met. Objects of lists and watches, which have all of a resource, are in it until they are
// deleted or written again. A key for encryption that comes back is no write: the server must restart.
type Objects struct {
	mu  sync.Mutex
	all map[string]Object
}

// NewObjects returns an empty set.
func NewObjects() *Objects {
	registerMetrics()
	return &Objects{all: map[string]Object{}}
}

func (s *Objects) add(o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[o.Key]; !known && len(s.all) < maxObjects {
		s.all[o.Key] = o
		s.count(o.Resource)
	}
}

func (s *Objects) remove(resource schema.GroupResource, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[key]; known {
		delete(s.all, key)
		s.count(resource)
	}
}

// forget removes the objects of a resource.
func (s *Objects) forget(resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ string, o Object) bool { return o.Resource == resource })
	s.count(resource)
}

// count shows the number of objects of a resource. The caller holds the lock.
func (s *Objects) count(resource schema.GroupResource) {
	n := 0
	for _, o := range s.all {
		if o.Resource == resource {
			n++
		}
	}
	show(resource, n)
}

// List returns the objects, sorted by key.
func (s *Objects) List() []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.all), func(a, b Object) int { return cmp.Compare(a.Key, b.Key) })
}

// none returns whether there are none, of any resource.
func (s *Objects) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) == 0
}

var (
	objects = instrument.GaugeVec("jobset_apiserver_store_unreadable_objects",
		"Number of objects in the store that the server cannot decrypt or decode, by resource.", "resource")

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(objects) })
}

func show(resource schema.GroupResource, count int) {
	objects.WithLabelValues(resource.String()).Set(float64(count))
}
