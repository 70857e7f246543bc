// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

// layered stores what an action changes, by the strategy of the actions of a kind. What mutating admission changes on top of that is
// prepared and validated by the main strategy, as an edit of the object that the action left.
type layered struct {
	rest.RESTUpdateStrategy
	main rest.RESTUpdateStrategy
}

// PrepareForUpdate prepares the change of the action, and then the change of admission.
func (s layered) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	acted, more := s.acted(ctx, obj, old)
	if !more {
		s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
		return
	}
	next, prev, after := accessor(obj), accessor(old), accessor(acted)
	generation := after.GetGeneration()
	after.SetGeneration(prev.GetGeneration())
	s.main.PrepareForUpdate(ctx, obj, acted)
	next.SetGeneration(max(generation, next.GetGeneration())) // both changes are one
}

// ValidateUpdate checks the change of the action, and the change of admission.
func (s layered) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
	if _, more := s.acted(ctx, obj, old); !more {
		return errs
	}
	for _, err := range s.main.ValidateUpdate(ctx, obj, old) {
		if !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	return errs
}

// acted returns the old object with what the action changed, and whether admission changed more.
func (s layered) acted(ctx context.Context, obj, old runtime.Object) (runtime.Object, bool) {
	if !differ(obj, old) {
		return obj, false
	}
	acted := obj.DeepCopyObject()
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, acted, old)
	return acted, differ(obj, acted)
}

// Objects on which users act have metadata, a spec and a status, and nothing else.

func accessor(obj runtime.Object) metav1.Object {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta()
}

func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// keep gives an object the status of another one, and its record of who owns which field.
func keep(obj, from runtime.Object) {
	part(obj, "Status").Set(part(from, "Status"))
	accessor(obj).SetManagedFields(accessor(from).GetManagedFields())
}

// differ returns whether anything but the status differs. The generation follows from the rest.
func differ(a, b runtime.Object) bool {
	next, prev := part(a, "ObjectMeta").Interface().(metav1.ObjectMeta), part(b, "ObjectMeta").Interface().(metav1.ObjectMeta)
	next.ManagedFields, next.Generation = prev.ManagedFields, prev.Generation
	return !equality.Semantic.DeepEqual(next, prev) || !equality.Semantic.DeepEqual(part(a, "Spec").Interface(), part(b, "Spec").Interface())
}

// reversed returns the field of the spec that the action changed, and that has its former value again; "" if there is
// none. A field that has a third value was changed further, as by any edit that admission completes.
func reversed(obj, wanted, former runtime.Object) string {
	is, want, was := part(obj, "Spec"), part(wanted, "Spec"), part(former, "Spec")
	for i := range is.NumField() {
		if !same(want.Field(i), was.Field(i)) && !same(is.Field(i), want.Field(i)) && same(is.Field(i), was.Field(i)) {
			name := is.Type().Field(i).Name
			return "spec." + strings.ToLower(name[:1]) + name[1:]
		}
	}
	return ""
}

// same returns whether two values of a field mean the same. A switch that is absent is off.
func same(a, b reflect.Value) bool {
	if on, ok := a.Interface().(*bool); ok {
		return ptr.Deref(on, false) == ptr.Deref(b.Interface().(*bool), false)
	}
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}
