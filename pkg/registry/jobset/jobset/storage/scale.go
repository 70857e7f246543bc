// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// ScaleREST serves jobsets/scale: the size of the Jobs of one replicatedJob, for autoscalers. Writes go through the store
// and the strategy of the main resource, so that a size is checked there alone.
type ScaleREST struct {
	store *registry.Store
	// elastic tells that sizes may change at all.
	elastic bool
}

var (
	_ rest.Patcher                  = &ScaleREST{}
	_ rest.GroupVersionKindProvider = &ScaleREST{}
	_ rest.TableConvertor           = &ScaleREST{}
)

// New returns an empty Scale.
func (r *ScaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *ScaleREST) Destroy() {}

// GroupVersionKind is that of the Scale of all resources.
func (r *ScaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return scaleKind
}

// Get returns the Scale of the JobSet.
func (r *ScaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(obj)
}

// Update sets the size. It never creates a JobSet, not even for an applier.
func (r *ScaleREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	validate := func(ctx context.Context, obj, old runtime.Object) error {
		scale, err := r.scaleOf(obj)
		if err != nil {
			return err
		}
		before, err := r.scaleOf(old)
		if err != nil {
			return err
		}
		return updateValidation(ctx, scale, before)
	}
	if updateValidation == nil {
		validate = nil
	}
	info := &scaledInfo{UpdatedObjectInfo: objInfo, elastic: r.elastic}
	obj, _, err := r.store.Update(ctx, name, info, rest.ValidateAllObjectFunc, validate, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := r.scaleOf(obj)
	return scale, false, err
}

func (r *ScaleREST) scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	js := obj.(*jobset.JobSet)
	rj, err := scaled(js, r.elastic)
	if err != nil {
		return nil, err
	}
	return scaleOf(js, rj)
}

// ConvertToTable prints the Scale.
func (r *ScaleREST) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "name of the JobSet"},
			{Name: "Desired", Type: "integer", Description: "pods that each Job of the scaled replicatedJob should have"},
			{Name: "Current", Type: "integer", Description: "pods that each of them has, as far as is known"},
			{Name: "Age", Type: "date", Description: "creation time of the JobSet"},
		}
	}
	var err error
	table.Rows, err = metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		scale, ok := obj.(*autoscalingv1.Scale)
		if !ok {
			return nil, fmt.Errorf("printing a Scale: got a %T", obj)
		}
		table.ResourceVersion = scale.ResourceVersion
		return []any{name, int64(scale.Spec.Replicas), int64(scale.Status.Replicas), age}, nil
	})
	return table, err
}

// scaledInfo makes a changed JobSet of a changed Scale.
type scaledInfo struct {
	rest.UpdatedObjectInfo
	elastic bool
}

// UpdatedObject lets the request change the Scale of the JobSet, and the JobSet accordingly. The request was prepared for
// a Scale: it knows the owners of fields in the form that they have there.
func (i *scaledInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	js := old.DeepCopyObject().(*jobset.JobSet)
	rj, err := scaled(js, i.elastic)
	if err != nil {
		return nil, err
	}
	before, err := scaleOf(js, rj)
	if err != nil {
		return nil, err
	}
	owners := newScaleOwners(js, rj)
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := i.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a Scale of %s, not a %T", autoscalingv1.SchemeGroupVersion, obj))
	}
	if errs := validateScale(scale); len(errs) > 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), js.Name, bounds.Causes(errs))
	}
	js.ResourceVersion = scale.ResourceVersion
	setSize(rj, scale.Spec.Replicas)
	js.ManagedFields, err = owners.toParent(scale.ManagedFields)
	return js, err
}

func validateScale(scale *autoscalingv1.Scale) field.ErrorList {
	if scale.Spec.Replicas >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be 1 or more: suspend the JobSet to run no pods")}
}
