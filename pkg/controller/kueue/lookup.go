// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Of returns the Workload of an owner, shared and read-only, and whether that is known; nil if there is none. If there
// are several, it is the oldest one which is not being deleted.
func (w *Watch) Of(owner types.UID) (found *plan.Workload, known bool) {
	candidates, known := w.by(indexOwner, string(owner))
	for _, candidate := range candidates {
		if found == nil || before(candidate, found) {
			found = candidate
		}
	}
	return found, known
}

// Holding returns the Workloads that hold quota for sequences of this name, in the order of their names, and whether they are known.
func (w *Watch) Holding(sequence cache.ObjectName) (found []*plan.Workload, known bool) {
	found, known = w.by(indexSequence, sequence.String())
	slices.SortFunc(found, func(a, b *plan.Workload) int { return cmp.Compare(a.Name, b.Name) })
	return found, known
}

// Sequences returns the names of the sequences for which Workloads hold quota, as far as they are known.
func (w *Watch) Sequences() (names []cache.ObjectName) {
	w.mu.Lock()
	informer := w.informer
	w.mu.Unlock()
	if informer == nil {
		return nil
	}
	for _, obj := range informer.List() {
		if workload := obj.(*plan.Workload); ownedBySequence(workload) {
			names = append(names, cache.NewObjectName(workload.Namespace, workload.Owner().Name))
		}
	}
	return names
}

// by returns the Workloads for which an index has a value, and whether they are known.
func (w *Watch) by(index, value string) (found []*plan.Workload, known bool) {
	w.Want()
	w.mu.Lock()
	informer := w.informer
	if w.availability != Served || len(w.unfollowed()) > 0 {
		informer = nil
	}
	w.mu.Unlock()
	if informer == nil {
		return nil, false
	}
	if value == "" {
		return nil, true
	}
	objects, err := informer.ByIndex(index, value)
	if err != nil {
		return nil, false // the index exists
	}
	for _, obj := range objects {
		found = append(found, obj.(*plan.Workload))
	}
	return found, true
}

// before orders the Workloads of one owner.
func before(a, b *plan.Workload) bool {
	if gone := a.DeletionTimestamp != nil; gone != (b.DeletionTimestamp != nil) {
		return !gone
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// List returns the Workloads that are known, as *plan.Workload. It begins no watch, and there are none without one.
func (w *Watch) List() []any {
	w.mu.Lock()
	informer := w.informer
	w.mu.Unlock()
	if informer == nil {
		return nil
	}
	return informer.List()
}
