// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

// readTimeout bounds how long a rollback waits for the revisions.
const readTimeout = 15 * time.Second

// act is what an action does to a set for a request with the spec S.
type act[S any] = func(*leaderworkerset.LeaderWorkerSet, *S, actions.Call) (*batch.LeaderWorkerSetActionStatus, error)

// actionsOn returns the storage of every action by the name of its subresource.
func actionsOn(target action.Target, reader provider.RevisionReader) map[string]rest.Storage {
	return map[string]rest.Storage{
		"restart": serve(target, "LeaderWorkerSetRestart", validation.ValidateLeaderWorkerSetRestart, actions.Restart, nil,
			func(r *batch.LeaderWorkerSetRestart) (*batch.LeaderWorkerSetRestartSpec, *batch.LeaderWorkerSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"rollback": serve(target, "LeaderWorkerSetRollback", validation.ValidateLeaderWorkerSetRollback, nil,
			func(ctx context.Context, r *batch.LeaderWorkerSetRollback) (act[batch.LeaderWorkerSetRollbackSpec], error) {
				return prepareRollback(ctx, reader, r)
			},
			func(r *batch.LeaderWorkerSetRollback) (*batch.LeaderWorkerSetRollbackSpec, *batch.LeaderWorkerSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"pause": serve(target, "LeaderWorkerSetPause", validation.ValidateLeaderWorkerSetAction, actions.Pause, nil,
			func(r *batch.LeaderWorkerSetPause) (*batch.LeaderWorkerSetActionSpec, *batch.LeaderWorkerSetActionStatus) {
				return &r.Spec, &r.Status
			}),
		"resume": serve(target, "LeaderWorkerSetResume", validation.ValidateLeaderWorkerSetAction, actions.Resume, nil,
			func(r *batch.LeaderWorkerSetResume) (*batch.LeaderWorkerSetActionSpec, *batch.LeaderWorkerSetActionStatus) {
				return &r.Spec, &r.Status
			}),
	}
}

// serve returns the storage of an action whose requests have the kind. The parts of a request are its spec and status.
func serve[T, S any, R action.Request[T]](
	target action.Target, kind string, validate func(*S) field.ErrorList, do act[S], prepare func(context.Context, R) (act[S], error),
	parts func(R) (*S, *batch.LeaderWorkerSetActionStatus),
) rest.Storage {
	return action.NewPure(target, action.Pure[*leaderworkerset.LeaderWorkerSet, T, S, batch.LeaderWorkerSetActionStatus, actions.Call, R]{
		Kind: batchv1alpha1.SchemeGroupVersion.WithKind(kind), Validate: validate, Act: do, Prepare: prepare, Parts: parts,
		Call:  func(user string, now time.Time) actions.Call { return actions.Call{User: user, Now: now} },
		Event: newEvent,
	})
}

// prepareRollback reads the revisions of the set, as the server: users need no rights on them. What goes wrong is no fault of the user.
func prepareRollback(ctx context.Context, reader provider.RevisionReader, r *batch.LeaderWorkerSetRollback) (
	act[batch.LeaderWorkerSetRollbackSpec], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := reader.List(ctx, r.Namespace, leaderworkersetv1.SetNameLabelKey, r.Name)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("reading the revisions of the LeaderWorkerSet from the main cluster: " + err.Error())
	}
	return actions.RollbackTo(all), nil
}

// newEvent describes a request that changed its set. Its kind, such as LeaderWorkerSetRestart, names the action.
func newEvent(kind string, request metav1.Object, answer *batch.LeaderWorkerSetActionStatus) provider.Event {
	verb := strings.TrimPrefix(kind, "LeaderWorkerSet")
	what, reason := describe(request, answer)
	return provider.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: "LeaderWorkerSet",
			Namespace: request.GetNamespace(), Name: request.GetName(), UID: answer.UID,
		},
		Action: strings.ToLower(verb), Reason: verb + "Requested",
		Note: provider.EventNote(fmt.Sprintf("%s asked to %s", answer.User, what), reason, ""),
	}
}

// describe says what a request asks for, and why.
func describe(request metav1.Object, answer *batch.LeaderWorkerSetActionStatus) (what, reason string) {
	switch r := request.(type) {
	case *batch.LeaderWorkerSetRestart:
		if r.Spec.Group != nil {
			return fmt.Sprintf("restart group %d", *r.Spec.Group), r.Spec.Reason
		}
		return "restart all groups", r.Spec.Reason
	case *batch.LeaderWorkerSetRollback:
		return fmt.Sprintf("roll the set back to revision %d", answer.Revision), r.Spec.Reason
	case *batch.LeaderWorkerSetPause:
		return "pause rolling updates", r.Spec.Reason
	case *batch.LeaderWorkerSetResume:
		return "resume rolling updates", r.Spec.Reason
	}
	return "change the set", ""
}
