// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

// actionsOn returns the storage of every action by the name of its subresource.
func actionsOn(target action.Target) map[string]rest.Storage {
	return map[string]rest.Storage{
		"restart": serve(target, "SequentialJobRestart", validation.ValidateSequenceAction, actions.Restart,
			func(r *batch.SequentialJobRestart) (*batch.SequentialJobActionSpec, *batch.SequentialJobActionStatus) {
				return &r.Spec, &r.Status
			}),
		"suspend": serve(target, "SequentialJobSuspend", validation.ValidateSequenceAction, actions.Suspend,
			func(r *batch.SequentialJobSuspend) (*batch.SequentialJobActionSpec, *batch.SequentialJobActionStatus) {
				return &r.Spec, &r.Status
			}),
		"resume": serve(target, "SequentialJobResume", validation.ValidateSequenceAction, actions.Resume,
			func(r *batch.SequentialJobResume) (*batch.SequentialJobActionSpec, *batch.SequentialJobActionStatus) {
				return &r.Spec, &r.Status
			}),
		"cancel": serve(target, "SequentialJobCancel", validation.ValidateSequenceAction, actions.Cancel,
			func(r *batch.SequentialJobCancel) (*batch.SequentialJobActionSpec, *batch.SequentialJobActionStatus) {
				return &r.Spec, &r.Status
			}),
		"retry": serve(target, "SequentialJobRetry", validation.ValidateSequentialJobRetry, actions.Retry,
			func(r *batch.SequentialJobRetry) (*batch.SequentialJobRetrySpec, *batch.SequentialJobActionStatus) {
				return &r.Spec, &r.Status
			}),
	}
}

// serve returns the storage of an action whose requests have the kind. The parts of a request are its spec and status.
func serve[T, S any, R action.Request[T]](
	target action.Target, kind string, validate func(*S) field.ErrorList,
	act func(*batch.SequentialJob, *S, actions.Call) (*batch.SequentialJobActionStatus, error),
	parts func(R) (*S, *batch.SequentialJobActionStatus),
) rest.Storage {
	return action.NewPure(target, action.Pure[*batch.SequentialJob, T, S, batch.SequentialJobActionStatus, actions.Call, R]{
		Kind: batchv1alpha1.SchemeGroupVersion.WithKind(kind), Validate: validate, Act: act, Parts: parts,
		Call:  func(user string, now time.Time) actions.Call { return actions.Call{User: user, Now: now} },
		Event: newEvent,
	})
}
