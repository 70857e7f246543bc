// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package annotation is what the admission plugins share that keep a fact about an object in an annotation, which clients cannot change.
package annotation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// running are the resources whose objects run something.
var running = map[schema.GroupResource]bool{
	jobset.Resource("jobsets"):                     true,
	batch.Resource("sequentialjobs"):               true,
	leaderworkerset.Resource("leaderworkersets"):   true,
	disaggregatedset.Resource("disaggregatedsets"): true,
}

// Runs returns whether objects of a resource run something.
func Runs(resource schema.GroupResource) bool { return running[resource] }

// Applies returns whether a request is about an object that runs something, and not about a subresource of it.
func Applies(attributes admission.Attributes) bool {
	return attributes.GetSubresource() == "" && Runs(attributes.GetResource().GroupResource())
}

// ValueOf returns an annotation of an object; empty if the object lacks it.
func ValueOf(object runtime.Object, key string) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetAnnotations()[key]
}

// Set changes an annotation of an object; an empty value removes it.
func Set(object metav1.Object, key, value string) {
	annotations := object.GetAnnotations()
	switch {
	case value == "":
		delete(annotations, key)
	case annotations == nil:
		annotations = map[string]string{key: value}
	default:
		annotations[key] = value
	}
	object.SetAnnotations(annotations)
}
