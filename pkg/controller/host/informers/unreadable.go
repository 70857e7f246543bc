// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// keeping returns a transform with which an object that the server cannot read any more stays in the cache as it was,
// with the annotation. What it holds, such as topology domains, is still in use.
func (w *sharedWatch) keeping(next cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		placeholder, ok := obj.(metav1.Object)
		if !ok || !unreadable.Is(placeholder) {
			return next(obj)
		}
		known, found, err := w.shared.GetIndexer().GetByKey(cache.MetaObjectToName(placeholder).String())
		if err != nil || !found {
			return next(obj)
		}
		all, ok := known.(*parted)
		if !ok {
			if kept, ok := marked(known, placeholder); ok {
				return kept, nil
			}
			return next(obj)
		}
		kept := &parted{namespace: all.namespace, name: all.name, parts: make([]any, len(all.parts))}
		kept.version, _ = strconv.ParseUint(placeholder.GetResourceVersion(), 10, 64)
		for i, part := range all.parts {
			kept.parts[i], _ = marked(part, placeholder)
		}
		return kept, nil
	}
}

// marked returns a copy of an object that has the annotation of a placeholder. It returns what it got, and false, if
// that is no object, or is another object of the same name.
func marked(known any, placeholder metav1.Object) (any, bool) {
	object, ok := known.(runtime.Object)
	if !ok {
		return known, false
	}
	kept, ok := object.DeepCopyObject().(metav1.Object)
	if !ok || placeholder.GetUID() != "" && placeholder.GetUID() != kept.GetUID() {
		return known, false
	}
	annotations := map[string]string{}
	maps.Copy(annotations, kept.GetAnnotations())
	annotations[unreadable.Annotation] = placeholder.GetAnnotations()[unreadable.Annotation]
	kept.SetAnnotations(annotations)
	kept.SetResourceVersion(placeholder.GetResourceVersion())
	return kept, true
}
