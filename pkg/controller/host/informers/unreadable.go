// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Placeholder is what is known of an object that the server cannot read.
type Placeholder struct {
	Namespace, Name string
	// UID, Labels and OwnerReferences are empty if the metadata cannot be read, either. Then the object may have any owner and any label.
	UID             types.UID
	Labels          map[string]string
	OwnerReferences []metav1.OwnerReference
	// Cause is why the object cannot be read.
	Cause string
	// Part is what the kind sees of the object: as it was before, or of the placeholder. It is nil if the kind does not see it.
	Part any
}

// indexUnreadable is the index of placeholders by their namespace. No kind has an index of this name.
const indexUnreadable = "/unreadable"

// placeholder is what the cache keeps of an object that the server cannot read.
type placeholder struct {
	Placeholder
	version string
	// kept is what the cache held of the object before, or holds of the placeholder.
	kept any
}

var _ metav1.ObjectMetaAccessor = &placeholder{}

// GetObjectMeta returns what the cache needs to know of an object.
func (p *placeholder) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.version}
}

func newPlaceholder(obj metav1.Object) *placeholder {
	return &placeholder{version: obj.GetResourceVersion(), Placeholder: Placeholder{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Labels: maps.Clone(obj.GetLabels()),
		OwnerReferences: slices.Clone(obj.GetOwnerReferences()), Cause: obj.GetAnnotations()[unreadable.Annotation],
	}}
}

// unreadableIn indexes placeholders by their namespace.
func unreadableIn(obj any) ([]string, error) {
	if p, ok := obj.(*placeholder); ok {
		return []string{p.Namespace}, nil
	}
	return nil, nil
}

// Unreadable returns the objects in a namespace that the server cannot read, and that the kind needs or may need.
func (i *Informer) Unreadable(namespace string) (list []Placeholder, err error) {
	objs, err := i.shared.GetIndexer().ByIndex(indexUnreadable, namespace)
	if err != nil {
		return nil, fmt.Errorf("listing %s that cannot be read: %w", i.Resource.Resource, err)
	}
	for _, obj := range objs {
		if p, needed := i.placeholder(obj); needed {
			list = append(list, p)
		}
	}
	return list, nil
}

// placeholder returns what is known of an object in the cache; false if the object can be read, or if the kind does not need it.
func (i *Informer) placeholder(obj any) (Placeholder, bool) {
	p, ok := obj.(*placeholder)
	if !ok {
		return Placeholder{}, false
	}
	found := p.Placeholder
	found.Part = i.part(obj)
	_, carried := p.Labels[i.Label]
	return found, carried || i.Label == "" || p.UID == "" || found.Part != nil
}

// OnUnreadable sets what is called when an object that the kind needs or may need cannot be read, changes, can be read again,
// or is gone. It is called before the watch is built.
func (i *Informer) OnUnreadable(handle func(Placeholder)) { i.unreadable = handle }

func (i *Informer) handleUnreadable() cache.ResourceEventHandler {
	look := func(obj any) {
		if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = missed.Obj
		}
		if p, needed := i.placeholder(obj); needed {
			i.unreadable(p)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(before, after any) { look(before); look(after) },
		DeleteFunc: look,
	}
}

// mayBeUnreadable returns whether the objects come from a server that has placeholders. On objects of other servers the
// annotation means nothing: anyone can write it there.
func (w *sharedWatch) mayBeUnreadable() bool {
	kinds, _, err := scheme.Scheme.ObjectKinds(w.example)
	return err == nil && len(kinds) > 0
}

// keeping returns a transform with which an object that the server cannot read any more stays in the cache as it was,
// with the annotation. What it holds, such as topology domains, is still in use.
func (w *sharedWatch) keeping(next cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		if _, ok := obj.(*placeholder); ok {
			return obj, nil
		}
		object, ok := obj.(metav1.Object)
		if !ok || !unreadable.Is(object) {
			return next(obj)
		}
		p := newPlaceholder(object)
		known, found, err := w.shared.GetIndexer().GetByKey(cache.MetaObjectToName(object).String())
		if err == nil && found {
			if p.kept = asBefore(known, object); p.kept != nil {
				return p, nil
			}
		}
		p.kept, err = next(obj)
		return p, err
	}
}

// asBefore returns what the cache holds of an object, for its placeholder. It returns nil if that is another object of the same name.
func asBefore(known any, object metav1.Object) any {
	if p, ok := known.(*placeholder); ok {
		known = p.kept
	}
	all, ok := known.(*parted)
	if !ok {
		return marked(known, object)
	}
	kept := &parted{namespace: all.namespace, name: all.name, parts: make([]any, len(all.parts))}
	kept.version, _ = strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	for i, part := range all.parts {
		if part == nil {
			continue
		}
		if kept.parts[i] = marked(part, object); kept.parts[i] == nil {
			return nil
		}
	}
	return kept
}

// marked returns a copy of what a kind keeps of an object, with the annotation of a placeholder. A kind that keeps less
// than objects finds placeholders with Unreadable, and gets what it keeps as it is. It returns nil for another object of the same name.
func marked(part any, placeholder metav1.Object) any {
	var was metav1.Object
	switch o := part.(type) {
	case metav1.Object:
		was = o
	case metav1.ObjectMetaAccessor:
		was = o.GetObjectMeta()
	}
	if was != nil && placeholder.GetUID() != "" && was.GetUID() != "" && placeholder.GetUID() != was.GetUID() {
		return nil
	}
	object, ok := part.(runtime.Object)
	if !ok {
		return part
	}
	kept, ok := object.DeepCopyObject().(metav1.Object)
	if !ok {
		return part
	}
	annotations := map[string]string{}
	maps.Copy(annotations, kept.GetAnnotations())
	annotations[unreadable.Annotation] = placeholder.GetAnnotations()[unreadable.Annotation]
	kept.SetAnnotations(annotations)
	kept.SetResourceVersion(placeholder.GetResourceVersion())
	return kept
}
