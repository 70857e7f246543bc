// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// actionVersion is the served version of the requests.
var actionVersion = schema.GroupVersion{Group: batch.GroupName, Version: "v1alpha1"}

// actor changes JobSets in the store on behalf of users.
type actor struct {
	store    *registry.Store
	strategy strategy.ActionStrategy
	now      func() time.Time
	recorder Recorder
}

// newActions returns the storage of every action by the name of its subresource.
func newActions(store *registry.Store, strategy strategy.ActionStrategy, now func() time.Time, recorder Recorder) map[string]rest.Storage {
	actionStore := *store
	actionStore.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: strategy}
	a := actor{store: &actionStore, strategy: strategy, now: now, recorder: recorder}
	return map[string]rest.Storage{
		"restart": &ActionREST[batch.JobSetRestart, *batch.JobSetRestart]{
			actor: a, kind: "JobSetRestart", validate: validation.ValidateRestart,
			act: func(js *jobset.JobSet, r *batch.JobSetRestart, c actions.Call) (*batch.JobSetActionStatus, error) {
				return actions.Restart(js, &r.Spec, c)
			},
			status: func(r *batch.JobSetRestart) *batch.JobSetActionStatus { return &r.Status },
		},
		"suspend": &ActionREST[batch.JobSetSuspend, *batch.JobSetSuspend]{
			actor: a, kind: "JobSetSuspend", validate: validation.ValidateSuspend,
			act: func(js *jobset.JobSet, r *batch.JobSetSuspend, c actions.Call) (*batch.JobSetActionStatus, error) {
				return actions.Suspend(js, &r.Spec, c)
			},
			status: func(r *batch.JobSetSuspend) *batch.JobSetActionStatus { return &r.Status },
		},
		"resume": &ActionREST[batch.JobSetResume, *batch.JobSetResume]{
			actor: a, kind: "JobSetResume", validate: validation.ValidateResume,
			act: func(js *jobset.JobSet, r *batch.JobSetResume, c actions.Call) (*batch.JobSetActionStatus, error) {
				return actions.Resume(js, &r.Spec, c)
			},
			status: func(r *batch.JobSetResume) *batch.JobSetActionStatus { return &r.Status },
		},
		"cancel": &ActionREST[batch.JobSetCancel, *batch.JobSetCancel]{
			actor: a, kind: "JobSetCancel", validate: validation.ValidateCancel,
			act: func(js *jobset.JobSet, r *batch.JobSetCancel, c actions.Call) (*batch.JobSetActionStatus, error) {
				return actions.Cancel(js, &r.Spec, c)
			},
			status: func(r *batch.JobSetCancel) *batch.JobSetActionStatus { return &r.Status },
		},
		"retry": &ActionREST[batch.JobSetRetry, *batch.JobSetRetry]{
			actor: a, kind: "JobSetRetry", validate: validation.ValidateRetry,
			act: func(js *jobset.JobSet, r *batch.JobSetRetry, c actions.Call) (*batch.JobSetActionStatus, error) {
				return actions.Retry(js, &r.Spec, c)
			},
			status: func(r *batch.JobSetRetry) *batch.JobSetActionStatus { return &r.Status },
		},
	}
}

// actionRequest is the pointer to a request.
type actionRequest[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// ActionREST serves one action: a request that is created as a subresource of a JobSet changes the JobSet, and comes back
// with its status filled.
type ActionREST[T any, R actionRequest[T]] struct {
	actor
	kind     string
	validate func(R) field.ErrorList
	act      func(*jobset.JobSet, R, actions.Call) (*batch.JobSetActionStatus, error)
	status   func(R) *batch.JobSetActionStatus
}

var (
	_ rest.NamedCreater             = &ActionREST[batch.JobSetRestart, *batch.JobSetRestart]{}
	_ rest.GroupVersionKindProvider = &ActionREST[batch.JobSetRestart, *batch.JobSetRestart]{}
)

// New returns an empty request.
func (r *ActionREST[T, R]) New() runtime.Object { return R(new(T)) }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *ActionREST[T, R]) Destroy() {}

// GroupVersionKind is that of the request, which is of another group than the JobSet.
func (r *ActionREST[T, R]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return actionVersion.WithKind(r.kind)
}

// Create carries the request out on the JobSet of the name.
func (r *ActionREST[T, R]) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	req, ok := obj.(R)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a %s of %s, not a %T", r.kind, actionVersion, obj))
	}
	if err := address(ctx, req, name); err != nil {
		return nil, err
	}
	if errs := r.validate(req); len(errs) > 0 {
		return nil, apierrors.NewInvalid(batch.Kind(r.kind), name, bounds.Causes(errs))
	}
	if createValidation != nil {
		if err := createValidation(ctx, req.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	answer, changed, err := r.change(ctx, name, options.DryRun, func(js *jobset.JobSet, call actions.Call) (*batch.JobSetActionStatus, error) {
		return r.act(js, req, call)
	})
	if err != nil {
		return nil, err
	}
	if changed && len(options.DryRun) == 0 {
		r.recorder.Record(newEvent(r.kind, req, answer))
	}
	*r.status(req) = *answer
	req.SetManagedFields(nil) // nothing is stored that somebody could own
	return req, nil
}

// address makes sure that the request is about the JobSet of the URL, and makes it say so.
func address(ctx context.Context, req metav1.Object, name string) error {
	if n := req.GetName(); n != "" && n != name {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name must be %q, the name of the JobSet in the URL, not %q: correct it or leave it out", name, n))
	}
	namespace := request.NamespaceValue(ctx)
	if n := req.GetNamespace(); n != "" && n != namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace must be %q, the namespace in the URL, not %q: correct it or leave it out", namespace, n))
	}
	req.SetName(name)
	req.SetNamespace(namespace)
	return nil
}

// change applies an action to the JobSet of the name. The store repeats that on a newer object when somebody else was
// faster; an object that the action left alone is not written, and has not changed.
func (a actor) change(ctx context.Context, name string, dryRun []string, act func(*jobset.JobSet, actions.Call) (*batch.JobSetActionStatus, error)) (*batch.JobSetActionStatus, bool, error) {
	var user string
	if info, ok := request.UserFrom(ctx); ok {
		user = info.GetName()
	}
	var answer *batch.JobSetActionStatus
	var changed bool
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, current runtime.Object) (runtime.Object, error) {
		js := current.DeepCopyObject().(*jobset.JobSet)
		var err error
		// The time is that of the try that succeeds, so that the times of attempts do not go back.
		answer, err = act(js, a.strategy.Call(user, a.now()))
		changed = err == nil && !equality.Semantic.DeepEqual(js, current)
		return js, err
	})
	_, _, err := a.store.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	return answer, changed, err
}
