// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// TestWatchersSeeNoDeletion watches while an object is damaged: to the garbage collector, an owner that is deleted has no children.
func TestWatchersSeeNoDeletion(t *testing.T) {
	e := newEnv(t)
	e.start(nil)
	e.create("bad")
	e.eventually("the cache has it", func() bool { return len(e.list("0")) == 1 })
	w, err := e.store.Watch(t.Context(), "/jobset.x-k8s.io/jobsets/", storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e.put("bad", []byte("damaged"))
	for _, want := range []watch.EventType{watch.Added, watch.Modified} {
		event := <-w.ResultChan()
		if event.Type != want {
			t.Fatalf("event %s %v, want %s", event.Type, event.Object, want)
		}
	}
}

// TestSelectorsStillMatch watches with a selector: an object whose labels can be read does not leave, and the watch sees when it can be
// read again.
func TestSelectorsStillMatch(t *testing.T) {
	e := newEnv(t)
	e.start(nil)
	e.create("bad")
	e.eventually("the cache has it", func() bool { return len(e.list("0")) == 1 })
	selected := storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"a": "b"}), Field: fields.Everything(), GetAttrs: storage.DefaultNamespaceScopedAttr}
	w, err := e.store.Watch(t.Context(), "/jobset.x-k8s.io/jobsets/", storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: selected})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	sound := e.stored("bad")
	next := func(want watch.EventType, damaged bool) {
		t.Helper()
		event := <-w.ResultChan()
		obj := event.Object
		if shared, ok := obj.(runtime.CacheableObject); ok { // watchers share what they encode
			obj = shared.GetObject()
		}
		if set, ok := obj.(*jobset.JobSet); event.Type != want || !ok || unreadable.Is(set) != damaged {
			t.Fatalf("event %s %v, want %s, unreadable=%t", event.Type, event.Object, want, damaged)
		}
	}
	next(watch.Added, false)
	e.put("bad", damages["a flipped bit in a length of the spec"].damage(e.stored("bad")))
	next(watch.Modified, true)
	e.put("bad", sound)
	next(watch.Modified, false)
}
