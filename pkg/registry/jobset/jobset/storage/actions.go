// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// actor serves actions on JobSets.
type actor struct {
	target   action.Target
	strategy strategy.ActionStrategy
}

// actions returns the storage of every action by the name of its subresource.
func (a actor) actions() map[string]rest.Storage {
	return map[string]rest.Storage{
		"restart": serve(a, "JobSetRestart", validation.ValidateRestart, actions.Restart, actions.WarningsOfRestart,
			func(r *batch.JobSetRestart) (*batch.JobSetRestartSpec, *batch.JobSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"suspend": serve(a, "JobSetSuspend", validation.ValidateAction, actions.Suspend, nil,
			func(r *batch.JobSetSuspend) (*batch.JobSetActionSpec, *batch.JobSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"resume": serve(a, "JobSetResume", validation.ValidateAction, actions.Resume, nil,
			func(r *batch.JobSetResume) (*batch.JobSetActionSpec, *batch.JobSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"cancel": serve(a, "JobSetCancel", validation.ValidateAction, actions.Cancel, nil,
			func(r *batch.JobSetCancel) (*batch.JobSetActionSpec, *batch.JobSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"retry": serve(a, "JobSetRetry", validation.ValidateRetry, actions.Retry, nil,
			func(r *batch.JobSetRetry) (*batch.JobSetRetrySpec, *batch.JobSetActionStatus) {
				return &r.Spec, &r.Status
			}),
	}
}

// serve returns the storage of an action whose requests have the kind. The parts of a request are its spec and status.
func serve[T, S any, R action.Request[T]](
	a actor, kind string, validate func(*S) field.ErrorList,
	act func(*jobset.JobSet, *S, actions.Call) (*batch.JobSetActionStatus, error),
	warn func(*jobset.JobSet, *S) []string,
	parts func(R) (*S, *batch.JobSetActionStatus),
) rest.Storage {
	return action.NewPure(a.target, action.Pure[*jobset.JobSet, T, S, batch.JobSetActionStatus, actions.Call, R]{
		Kind: batchv1alpha1.SchemeGroupVersion.WithKind(kind), Validate: validate, Act: act, Warn: warn, Parts: parts, Call: a.strategy.Call,
		Event: newEvent,
	})
}
