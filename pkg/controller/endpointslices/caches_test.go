// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// informer is a cache of a process. It holds what the real one would hold of the objects that its store has shown so far.
type informer[T simulation.Object] struct {
	simulation.Informer[T]
	p        *process
	need     informers.Need
	handlers []cache.ResourceEventHandler
	objects  map[string]any
}

// declared is an informer as the controller sees it.
type declared[T simulation.Object] struct{ *informer[T] }

// List returns all that is cached.
func (c declared[T]) List() []any { return c.all() }

// declare declares a cache of a process. It is filled by List of the other type.
func (p *process) declare(need informers.Need) (endpoints.Cache, simulation.Cache) {
	if p.mutant.need != nil {
		p.mutant.need(&need)
	}
	switch need.Resource.Resource {
	case "jobsets":
		return newInformer(p, p.sets, need)
	case "pods":
		return newInformer(p, p.pods, need)
	case "services":
		return newInformer(p, p.services, need)
	case "endpointslices":
		return newInformer(p, p.slices, need)
	}
	return newInformer(p, p.nodes, need)
}

func newInformer[T simulation.Object](p *process, of *simulation.Resource[T], need informers.Need) (endpoints.Cache, simulation.Cache) {
	c := &informer[T]{p: p, need: need}
	c.From = &of.Store
	c.Selects = func(object T) bool {
		_, carried := object.GetLabels()[need.Label]
		return (carried || need.Label == "") && (need.Only == nil || need.Only(object))
	}
	c.Handle = c.show
	return declared[T]{c}, c
}

func keyOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func (c *informer[T]) kept(object T) any {
	kept, err := c.need.Transform(object.DeepCopyObject())
	if err != nil {
		panic(err)
	}
	return kept
}

// show is what becomes of a change.
func (c *informer[T]) show(object T, gone bool) {
	key := keyOf(object)
	was, found := c.objects[key]
	if gone {
		delete(c.objects, key)
		for _, h := range c.handlers {
			h.OnDelete(was)
		}
		return
	}
	is := c.kept(object)
	c.objects[key] = is
	for _, h := range c.handlers {
		if found {
			h.OnUpdate(was, is)
		} else {
			h.OnAdd(is, false)
		}
	}
}

// List fills the cache.
func (c *informer[T]) List() {
	c.Informer.List()
	c.objects = map[string]any{}
	for _, object := range c.Informer.Objects {
		c.objects[keyOf(object)] = c.kept(object)
	}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		for _, h := range c.handlers {
			h.OnAdd(c.objects[key], true)
		}
	}
}

func (c *informer[T]) AddEventHandler(handler cache.ResourceEventHandler) {
	if c.p.mutant.handler != nil {
		handler = c.p.mutant.handler(c.need.Resource.Resource, handler)
	}
	c.handlers = append(c.handlers, handler)
}

func (c *informer[T]) HasSynced() bool { return c.objects != nil }

// Refused returns whether a controller takes it for granted that it may not fill the cache. No server refuses that for as long as it takes.
func (c *informer[T]) Refused() bool { return c.p.mutant.hasty && !c.HasSynced() }

func (c *informer[T]) LastStoreSyncResourceVersion() string {
	if c.p.mutant.forgetful {
		return "999999999"
	}
	return c.Informer.LastStoreSyncResourceVersion()
}

func (c *informer[T]) GetByKey(key string) (any, error) { return c.objects[key], nil }

func (c *informer[T]) ByIndex(index, value string) (all []any, err error) {
	for _, obj := range c.all() {
		values, err := c.need.Indexers[index](obj)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			all = append(all, obj)
		}
	}
	return all, nil
}

// all returns what is cached, in the order of names.
func (c *informer[T]) all() (all []any) {
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		all = append(all, c.objects[key])
	}
	return all
}
