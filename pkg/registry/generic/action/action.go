// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package action serves actions: a request that is created as a subresource of an object changes the object, and is
// returned with its status filled. Every kind has actions of its own; who may act, admission, conflicts, dry run and
// events are the same for all.
package action

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// Target is the resource on whose objects users act.
type Target struct {
	// Kind is the kind of the objects, as users know it.
	Kind     string
	store    *registry.Store
	strategy rest.RESTUpdateStrategy
	host     provider.Host
}

// NewTarget returns the target over the store of the main resource, which must be complete. The strategy limits what an
// action can change.
func NewTarget(kind string, main *registry.Store, limits rest.RESTUpdateStrategy, host provider.Host) Target {
	store := *main
	store.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: layered{RESTUpdateStrategy: limits, main: main.UpdateStrategy}}
	return Target{Kind: kind, store: &store, strategy: limits, host: host}
}

// Request is the pointer to a request.
type Request[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// ActFunc changes an object, and fills the status of a request.
type ActFunc[P runtime.Object, R any] func(object P, request R, user string, now time.Time) error

// Action is one action on objects of type P.
type Action[P runtime.Object, T any, R Request[T]] struct {
	// Kind is the served kind of the request.
	Kind schema.GroupVersionKind
	// Validate checks a request by itself.
	Validate func(R) field.ErrorList
	// Act changes the object and fills the status of the request, or returns an error. It is called again, on a newer
	// object, until the change is stored.
	Act ActFunc[P, R]
	// Prepare, if it is set, reads what the action needs besides the object, once per request, and returns the function to use
	// in place of Act.
	Prepare func(ctx context.Context, request R) (ActFunc[P, R], error)
	// Warn, if it is set, returns what a client is warned of when the request has changed the object, from the object as it was before.
	Warn func(object P, request R) []string
	// Event describes what the request changed.
	Event func(R) provider.Event
}

// REST serves one action.
type REST[P runtime.Object, T any, R Request[T]] struct {
	Target
	Action[P, T, R]
}

// New returns the storage of an action.
func New[P runtime.Object, T any, R Request[T]](target Target, action Action[P, T, R]) rest.Storage {
	return &REST[P, T, R]{Target: target, Action: action}
}

var (
	_ rest.NamedCreater             = &REST[runtime.Object, metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]{}
	_ rest.GroupVersionKindProvider = &REST[runtime.Object, metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]{}
)

// New returns an empty request.
func (r *REST[P, T, R]) New() runtime.Object { return R(new(T)) }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *REST[P, T, R]) Destroy() {}

// GroupVersionKind is the kind of the request, which may be of another group than the object.
func (r *REST[P, T, R]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return r.Action.Kind
}

// Create carries the request out on the object of the name.
func (r *REST[P, T, R]) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	kind := r.Action.Kind
	req, ok := obj.(R)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a %s of %s, not a %T", kind.Kind, kind.GroupVersion(), obj))
	}
	if err := r.address(ctx, req, name); err != nil {
		return nil, err
	}
	if errs := append(validation.Placeholder(req), r.Validate(req)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), name, bounds.Causes(errs))
	}
	if createValidation != nil {
		if err := createValidation(ctx, req.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	act := r.Act
	if r.Prepare != nil {
		var err error
		if act, err = r.Prepare(ctx, req); err != nil {
			return nil, err
		}
	}
	changed, err := r.change(ctx, name, req, act, options)
	if err != nil {
		return nil, err
	}
	if changed && len(options.DryRun) == 0 {
		r.host.Recorder.Record(r.Event(req))
	}
	req.SetManagedFields(nil) // nothing is stored that a manager could own
	return req, nil
}

// address checks that the request names the object of the URL, and sets the name and namespace if they are empty.
func (t Target) address(ctx context.Context, req metav1.Object, name string) error {
	if n := req.GetName(); n != "" && n != name {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name must be %q, the name of the %s in the URL, not %q: correct it or leave it out",
			name, t.Kind, n))
	}
	namespace := request.NamespaceValue(ctx)
	if n := req.GetNamespace(); n != "" && n != namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace must be %q, the namespace in the URL, not %q: correct it or leave it out",
			namespace, n))
	}
	req.SetName(name)
	req.SetNamespace(namespace)
	return nil
}

// change applies the action to the object of the name. An object that the action left alone is not written, and has not
// changed.
func (r *REST[P, T, R]) change(ctx context.Context, name string, req R, act ActFunc[P, R],
	options *metav1.CreateOptions) (changed bool, err error) {
	user := strategy.User(ctx)
	edit := newEdit(ctx, r.Target, name, options)
	var warnings []string
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, current runtime.Object) (runtime.Object, error) {
		object := current.DeepCopyObject().(P)
		if r.Warn != nil {
			warnings = r.Warn(object, req)
		}
		// Each try has its own time, so that times in the history do not go back.
		err := act(object, req, user, r.host.Now())
		changed = err == nil && !equality.Semantic.DeepEqual(object, current)
		return object, err
	}, edit.limit, edit.mutate)
	info = bounds.Metadata(info, schema.GroupKind{Group: r.store.DefaultQualifiedResource.Group, Kind: r.Target.Kind})
	ctx = strategy.WithFieldValidation(ctx, options.FieldValidation)
	_, _, err = r.store.Update(ctx, name, info, rest.ValidateAllObjectFunc, edit.validate, false, edit.options)
	if changed && err == nil {
		for _, text := range warnings {
			warning.AddWarning(ctx, "", text)
		}
	}
	return changed, err
}

// Unmet adds to a Conflict which precondition is not met, and what is so instead. Clients that know the precondition by
// another name, such as that of a flag, make their own sentence of it.
func Unmet(err *apierrors.StatusError, kind metav1.CauseType, precondition, message string) error {
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: kind, Field: "spec.preconditions." + precondition, Message: message}}
	return err
}

// Ago says how long ago something happened, after a space; nothing if that is not known.
func Ago(when *metav1.MicroTime, now time.Time) string {
	if when == nil {
		return ""
	}
	return " " + duration.HumanDuration(max(now.Sub(when.Time), 0)) + " ago"
}
