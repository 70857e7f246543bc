// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the SequentialJob resource and its subresources to the generic registry store.
package storage

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
)

// New returns the storage of sequentialjobs and of their subresources by name, over one store. The gates apply to JobSets, which can be
// steps.
func New(host provider.Host, gates gates.Gates) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, gates, host.Now)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &batch.SequentialJob{} },
		NewListFunc:               func() runtime.Object { return &batch.SequentialJobList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  batch.Resource("sequentialjobs"),
		SingularQualifiedResource: batch.Resource("sequentialjob"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            newTable(host.Now),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("completing the store of sequentialjobs: %w", err)
	}
	host.Neighbors.Serve(store.DefaultQualifiedResource, store.Get)
	store.BeginCreate = host.Neighbors.BeginCreate(collisions.Find)
	served := map[string]rest.Storage{
		"sequentialjobs":        bounds.NewStore(store, batch.Kind("SequentialJob"), "sj").InCategories("all"),
		"sequentialjobs/status": status.New(store, strategy.NewStatusStrategy(main)),
	}
	target := action.NewTarget("SequentialJob", store, strategy.NewActionStrategy(main), host)
	for name, action := range actionsOn(target) {
		served["sequentialjobs/"+name] = action
	}
	return served, nil
}

// predicate matches SequentialJobs by label and by the fields of selectableFields.
func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	sj, ok := obj.(*batch.SequentialJob)
	if !ok {
		return nil, nil, fmt.Errorf("selecting SequentialJobs: got a %T", obj)
	}
	return sj.Labels, selectableFields(sj), nil
}

// selectableFields are the fields that lists and watches can select by. An absent suspend counts as false.
func selectableFields(sj *batch.SequentialJob) fields.Set {
	return generic.AddObjectMetaFieldsSet(fields.Set{
		"spec.suspend": strconv.FormatBool(ptr.Deref(sj.Spec.Suspend, false)),
		"status.phase": string(sj.Status.Phase),
	}, &sj.ObjectMeta, true)
}
