// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the JobSet resource and its status subresource to the generic registry store.
package storage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// servedVersion is the version of JobSets in which managers record what they own: the only one that is served.
var servedVersion = schema.GroupVersion{Group: jobset.GroupName, Version: "v1alpha2"}

// REST serves jobsets.
type REST struct {
	*registry.Store
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
	_ rest.ResetFieldsStrategy  = &REST{}
)

// Update changes a JobSet, or creates the one of an applier.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	info := bounds.Metadata(objInfo, jobset.Kind("JobSet"))
	return r.Store.Update(ctx, name, info, createValidation, updateValidation, forceAllowCreate, options)
}

// New returns the storage of jobsets and of their subresources by name, over one store. The clock is that of actions and of
// durations; the recorder is told of actions.
func New(getter generic.RESTOptionsGetter, typer runtime.ObjectTyper, gates gates.Gates, now func() time.Time, recorder Recorder) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(typer, gates)
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
		TableConvertor:            tableConvertor{now: now},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("completing the store of jobsets: %w", err)
	}

	status := strategy.NewStatusStrategy(main)
	statusStore := *store
	statusStore.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: status}
	statusStore.ResetFieldsStrategy = status
	served := map[string]rest.Storage{
		"jobsets":        &REST{Store: store},
		"jobsets/status": &StatusREST{store: &statusStore},
		"jobsets/scale":  &ScaleREST{store: store, elastic: gates.ElasticJobSet},
	}
	for name, action := range newActions(store, strategy.NewActionStrategy(main), now, recorder) {
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
