// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// shown are the conditions that are used of Workloads of children.
var shown = []string{plan.ConditionQuotaReserved, plan.ConditionAdmitted, plan.ConditionEvicted, plan.ConditionFinished}

// transform keeps what is used of a Workload: all that package plan knows of those of sequences, and little of others. Of a Workload
// that cannot be read only the names are kept. It accepts its own results.
func transform(obj any) (any, error) {
	read, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	w := &plan.Workload{}
	if !ownedBySequence(read) {
		unstructured.RemoveNestedField(read.Object, "spec", "podSets")
		unstructured.RemoveNestedField(read.Object, "status", "admission")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, w); err != nil {
		w = &plan.Workload{}
	}
	w.ObjectMeta = metaOf(read)
	if !ownedBySequence(read) {
		w.Status.Conditions = slices.DeleteFunc(w.Status.Conditions, func(c metav1.Condition) bool { return !slices.Contains(shown, c.Type) })
		w.Status.Conditions = slices.Clip(w.Status.Conditions)
	}
	return w, nil
}

// metaOf returns what is used of the metadata of a Workload.
func metaOf(read *unstructured.Unstructured) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: read.GetNamespace(), Name: read.GetName(), UID: read.GetUID(), ResourceVersion: read.GetResourceVersion(),
		CreationTimestamp: read.GetCreationTimestamp(), DeletionTimestamp: read.GetDeletionTimestamp(), Finalizers: read.GetFinalizers(),
	}
	if owner := metav1.GetControllerOfNoCopy(read); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if by, deactivated := read.GetAnnotations()[batchv1alpha1.DeactivatedByKey]; deactivated {
		kept.Annotations = map[string]string{batchv1alpha1.DeactivatedByKey: by}
	}
	return kept
}

// ownedBySequence returns whether a Workload holds quota for a whole sequence.
func ownedBySequence(w metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	return owner != nil && owner.APIVersion == batchv1alpha1.SchemeGroupVersion.String() && owner.Kind == "SequentialJob"
}

// ownerOf indexes a Workload by the UID of its owner.
func ownerOf(obj any) ([]string, error) {
	if w, ok := obj.(*plan.Workload); ok && w.OwnerUID() != "" {
		return []string{string(w.OwnerUID())}, nil
	}
	return nil, nil
}

// sequenceOf indexes a Workload that holds quota for a whole sequence by the name of the sequence.
func sequenceOf(obj any) ([]string, error) {
	if w, ok := obj.(*plan.Workload); ok && ownedBySequence(w) {
		return []string{cache.NewObjectName(w.Namespace, w.Owner().Name).String()}, nil
	}
	return nil, nil
}
