// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the JobSet resource and its subresources to the generic registry store.
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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/status"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// New returns the storage of jobsets and of their subresources by name, over one store.
func New(host provider.Host, gates gates.Gates) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, gates, host.Now)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &jobset.JobSet{} },
		NewListFunc:               func() runtime.Object { return &jobset.JobSetList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  jobset.Resource("jobsets"),
		SingularQualifiedResource: jobset.Resource("jobset"),
		CreateStrategy:            bounds.CreateStrategy{RESTCreateStrategy: main},
		UpdateStrategy:            bounds.UpdateStrategy{RESTUpdateStrategy: main},
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            newTable(host.Now),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: host.Getter, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("completing the store of jobsets: %w", err)
	}
	host.Neighbors.Serve(store.DefaultQualifiedResource, store.Get)
	store.BeginCreate = host.Neighbors.BeginCreate(collisions.Find)
	served := map[string]rest.Storage{
		"jobsets":        bounds.NewStore(store, jobset.Kind("JobSet"), "js"),
		"jobsets/status": status.New(store, strategy.NewStatusStrategy(main)),
		"jobsets/scale":  scale.New(store, scaleKind(gates.ElasticJobSet)),
	}
	actions := strategy.NewActionStrategy(main)
	users := actor{target: action.NewTarget("JobSet", store, actions, host), strategy: actions}
	for name, action := range users.actions() {
		served["jobsets/"+name] = action
	}
	return served, nil
}

// predicate matches JobSets by label and by the fields of selectableFields.
func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	js, ok := obj.(*jobset.JobSet)
	if !ok {
		return nil, nil, fmt.Errorf("selecting JobSets: got a %T", obj)
	}
	return js.Labels, selectableFields(js), nil
}

// selectableFields are the fields that lists and watches can select by. An absent suspend counts as false.
func selectableFields(js *jobset.JobSet) fields.Set {
	return generic.AddObjectMetaFieldsSet(fields.Set{
		"spec.suspend":         strconv.FormatBool(ptr.Deref(js.Spec.Suspend, false)),
		"status.terminalState": js.Status.TerminalState,
	}, &js.ObjectMeta, true)
}
