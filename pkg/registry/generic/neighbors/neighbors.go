// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package neighbors lets a server warn of objects that need the same name as others, of the same kind or of another
// one. It knows no kinds: each has a function that finds such objects.
//
// All are read by name, from the cache of the server, and only when an object has been created; a bounded number of names is looked up.
package neighbors

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"
)

const (
	// MaxReads is how many other objects are looked up when an object is created.
	MaxReads = 32
	// MaxWarnings is how many names a client is warned of. Jobs of one template share the fate of the first one.
	MaxWarnings = 10
)

// Read reads an object by its name, in the namespace of the context.
type Read func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)

// Neighbors reads objects of all kinds that the server serves. A nil value reads none.
type Neighbors struct {
	mu    sync.RWMutex
	reads map[schema.GroupResource]Read
}

// New returns Neighbors that know no kinds.
func New() *Neighbors { return &Neighbors{reads: map[schema.GroupResource]Read{}} }

// Serve lets objects of a resource be read.
func (n *Neighbors) Serve(resource schema.GroupResource, read Read) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads[resource] = read
}

// BeginCreate returns a hook of stores. It warns of what find finds when the object has been created, so that what is
// refused costs nothing, and only users: an object with a controller has the name that its owner gave to it.
func (n *Neighbors) BeginCreate(find func(*Look, runtime.Object)) func(context.Context, runtime.Object,
	*metav1.CreateOptions) (registry.FinishFunc, error) {
	return func(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
		return func(_ context.Context, created bool) {
			if object, ok := obj.(metav1.Object); n == nil || !ok || !created || metav1.GetControllerOfNoCopy(object) != nil {
				return
			}
			l := n.Look(ctx)
			find(l, obj)
			for _, text := range l.texts {
				warning.AddWarning(ctx, "", text)
			}
		}, nil
	}
}

// key is the name of an object of a kind.
type key struct {
	resource schema.GroupResource
	name     string
}

// Look is a look at the neighbors of one object.
type Look struct {
	neighbors *Neighbors
	ctx       context.Context
	left      int
	known     map[key]metav1.Object
	texts     []string
}

// Look returns a look at what is in the namespace of the context.
func (n *Neighbors) Look(ctx context.Context) *Look {
	return &Look{neighbors: n, ctx: ctx, left: MaxReads, known: map[key]metav1.Object{}}
}

// Read returns an object as the cache of the server has it; nil if there is none, if it is about to be gone, if it
// cannot be read, or if enough was read.
func (l *Look) Read(resource schema.GroupResource, name string) metav1.Object {
	k := key{resource, name}
	if object, known := l.known[k]; known || l.Ends() || name == "" {
		return object
	}
	l.left--
	l.known[k] = nil
	l.neighbors.mu.RLock()
	read := l.neighbors.reads[resource]
	l.neighbors.mu.RUnlock()
	if read == nil {
		return nil
	}
	obj, err := read(l.ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	if object, ok := obj.(metav1.Object); ok && object.GetDeletionTimestamp() == nil {
		l.known[k] = object
	}
	return l.known[k]
}

// Ends returns whether nothing more is read.
func (l *Look) Ends() bool { return l.left == 0 }

// Warnings returns what was found.
func (l *Look) Warnings() []string { return l.texts }

// Warn adds a warning about the name of the object.
func (l *Look) Warn(format string, args ...any) {
	if text := "metadata.name: " + fmt.Sprintf(format, args...); len(l.texts) < MaxWarnings {
		l.texts = append(l.texts, text)
	}
}

// Cuts calls f with both sides of each dash of a name, the longest beginning first, until nothing more can be read.
func (l *Look) Cuts(name string, f func(before, after string)) {
	for i := strings.LastIndexByte(name, '-'); i > 0 && !l.Ends(); i = strings.LastIndexByte(name[:i], '-') {
		f(name[:i], name[i+1:])
	}
}
