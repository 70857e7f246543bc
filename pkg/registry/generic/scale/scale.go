// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale serves the scale subresource of any kind. Writes go through the store and the strategy of the main
// resource, so that a size is checked there alone.
package scale

import (
	"context"
	"errors"
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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// Target is what is scaled of an object: its Size is the number that the Scale shows and sets.
type Target struct {
	// Current is the size that the object has, as far as is known.
	Current int32
	// Selector selects the pods whose metrics decide about the size.
	Selector string
	// Size points into the object to the wanted size. A nil pointer stands for 1.
	Size *int32
	// Set sets the size in the object.
	Set func(size int32)
	// Paths are the fields that Set sets, in the served version. Who owns one of them owns all; the first one stands for them.
	Paths []fieldpath.Path
}

// Kind is what differs between kinds that can be scaled.
type Kind[P Object] struct {
	// Target returns what is scaled of an object, or an error that says why nothing can be.
	Target func(P) (*Target, error)
	// Validate checks a changed Scale by itself.
	Validate func(*autoscalingv1.Scale) field.ErrorList
	// Version is the version in which managers record what they own.
	Version schema.GroupVersion
	// Columns describe the name, the wanted and the current size, and the age, for tables.
	Columns [4]string
}

// Object is an object that can be scaled.
type Object interface {
	runtime.Object
	metav1.Object
}

// REST serves the scale of objects of type P.
type REST[P Object] struct {
	store *registry.Store
	kind  Kind[P]
}

// New returns the storage of the scale subresource, over the store of the main resource.
func New[P Object](main *registry.Store, kind Kind[P]) *REST[P] {
	return &REST[P]{store: main, kind: kind}
}

var (
	_ rest.Patcher                  = &REST[*metav1.PartialObjectMetadata]{}
	_ rest.GroupVersionKindProvider = &REST[*metav1.PartialObjectMetadata]{}
	_ rest.TableConvertor           = &REST[*metav1.PartialObjectMetadata]{}
)

// New returns an empty Scale.
func (r *REST[P]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *REST[P]) Destroy() {}

// GroupVersionKind is the kind of the Scale of all resources.
func (r *REST[P]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// Get returns the Scale of the object. An object that has no scale answers NotFound: a program that goes from a pod to its owners, such as
// the autoscaler of requests, takes only that for "cannot be scaled", and gives the pods up at any other error.
func (r *REST[P]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	scale, err := r.scaleOf(obj)
	if absent := (*Absent)(nil); errors.As(err, &absent) {
		return nil, absent.notFound
	}
	if err != nil {
		return nil, err
	}
	return scale, nil
}

// Update sets the size. It never creates an object, not even for an applier.
func (r *REST[P]) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
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
	obj, _, err := r.store.Update(ctx, name, &updatedInfo[P]{UpdatedObjectInfo: objInfo, kind: r.kind}, rest.ValidateAllObjectFunc, validate,
		false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := r.scaleOf(obj)
	return scale, false, err
}

func (r *REST[P]) scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	parent := obj.(P)
	target, err := r.kind.Target(parent)
	if err != nil {
		return nil, err
	}
	return target.scale(parent), nil
}

// scale describes the target. A size that is not set is 1.
func (t *Target) scale(parent metav1.Object) *autoscalingv1.Scale {
	size := int32(1)
	if t.Size != nil {
		size = *t.Size
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: parent.GetName(), Namespace: parent.GetNamespace(), UID: parent.GetUID(),
			ResourceVersion: parent.GetResourceVersion(), CreationTimestamp: parent.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: size},
		Status: autoscalingv1.ScaleStatus{Replicas: t.Current, Selector: t.Selector},
	}
}

// ConvertToTable prints the Scale.
func (r *REST[P]) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: r.kind.Columns[0]},
			{Name: "Desired", Type: "integer", Description: r.kind.Columns[1]},
			{Name: "Current", Type: "integer", Description: r.kind.Columns[2]},
			{Name: "Age", Type: "date", Description: r.kind.Columns[3]},
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

// updatedInfo makes a changed object of a changed Scale.
type updatedInfo[P Object] struct {
	rest.UpdatedObjectInfo
	kind Kind[P]
}

// UpdatedObject lets the request change the Scale of the object, and the object accordingly. The request was prepared for
// a Scale: it knows the owners of fields in the form that they have there.
func (i *updatedInfo[P]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	parent := old.DeepCopyObject().(P)
	target, err := i.kind.Target(parent)
	if err != nil {
		return nil, err
	}
	before := target.scale(parent)
	owners := newOwners(parent, target.Paths, i.kind.Version)
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
	if errs := append(validation.Placeholder(scale), i.kind.Validate(scale)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), parent.GetName(), bounds.Causes(errs))
	}
	if scale.ResourceVersion != "" { // without one, the size is set whatever the version is, as of a custom resource
		parent.SetResourceVersion(scale.ResourceVersion)
	}
	target.Set(scale.Spec.Replicas)
	entries, err := owners.toParent(scale.ManagedFields)
	parent.SetManagedFields(entries)
	return parent, err
}
