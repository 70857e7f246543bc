// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	jobsetclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Target of JobSets.
type JobSet struct{}

var _ Target = JobSet{}

func sets(c *cli.Clients) jobsetclient.JobSetInterface {
	return c.JobSets.JobsetV1alpha2().JobSets(c.Namespace)
}

// Preconditions implements Target.
func (JobSet) Preconditions(ctx context.Context, c *cli.Clients, name string) (*Preconditions, error) {
	set, err := sets(c).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return seen(set), nil
}

// seen are the preconditions that what was read still holds.
func seen(set *jobsetv1alpha2.JobSet) *Preconditions {
	p := &Preconditions{UID: ptr.To(set.UID), Attempt: ptr.To[int32](0)}
	if a := helper.CurrentAttempt(&set.Status); a != nil {
		p.Attempt = ptr.To(a.Number)
	}
	return p
}

// Has implements Target.
func (JobSet) Has(action string) bool { return action != rollback.name && action != pause.name }

// Takes implements Target.
func (JobSet) Takes(flag string) bool {
	return flag != fromStepFlag && flag != stepFlag && !slices.Contains(ofLeaderWorkerSet, flag)
}

// preconditionsOf returns the preconditions of requests to sets.
func preconditionsOf(p *Preconditions) *batchv1alpha1.ActionPreconditions {
	if p == nil {
		return nil
	}
	return &batchv1alpha1.ActionPreconditions{UID: p.UID, Attempt: p.Attempt}
}

// Send implements Target.
func (JobSet) Send(ctx context.Context, c *cli.Clients, action, name string, r Request, o metav1.CreateOptions) (Answer, error) {
	object := metav1.ObjectMeta{Name: name}
	preconditions := preconditionsOf(r.Preconditions)
	plain := batchv1alpha1.JobSetActionSpec{Reason: r.Reason, Preconditions: preconditions}
	switch action {
	case restart.name:
		out, err := sets(c).Restart(ctx, name, &batchv1alpha1.JobSetRestart{
			TypeMeta: typeMeta("JobSetRestart"), ObjectMeta: object,
			Spec: batchv1alpha1.JobSetRestartSpec{
				Scope: r.Scope, ReplicatedJob: r.ReplicatedJob, JobIndex: r.JobIndex, Reason: r.Reason,
				CountTowardsMaxRestarts: r.Counts, Force: r.Force, Preconditions: preconditions,
			},
		}, o)
		return answerOf("JobSetRestart", out, err, func() Status { return setStatus(&out.Status) })
	case suspend.name:
		out, err := sets(c).Suspend(ctx, name, &batchv1alpha1.JobSetSuspend{TypeMeta: typeMeta("JobSetSuspend"), ObjectMeta: object, Spec: plain},
			o)
		return answerOf("JobSetSuspend", out, err, func() Status { return setStatus(&out.Status) })
	case resume.name:
		out, err := sets(c).Resume(ctx, name, &batchv1alpha1.JobSetResume{TypeMeta: typeMeta("JobSetResume"), ObjectMeta: object, Spec: plain}, o)
		return answerOf("JobSetResume", out, err, func() Status { return setStatus(&out.Status) })
	case cancel.name:
		out, err := sets(c).Cancel(ctx, name, &batchv1alpha1.JobSetCancel{TypeMeta: typeMeta("JobSetCancel"), ObjectMeta: object, Spec: plain}, o)
		return answerOf("JobSetCancel", out, err, func() Status { return setStatus(&out.Status) })
	case retry.name:
		out, err := sets(c).Retry(ctx, name, &batchv1alpha1.JobSetRetry{
			TypeMeta: typeMeta("JobSetRetry"), ObjectMeta: object,
			Spec: batchv1alpha1.JobSetRetrySpec{Reason: r.Reason, MaxRestarts: r.MaxRestarts, Preconditions: preconditions},
		}, o)
		return answerOf("JobSetRetry", out, err, func() Status { return setStatus(&out.Status) })
	}
	return Answer{}, fmt.Errorf("JobSets have no action %s", action)
}

// answerOf returns the answer with its kind, which clients leave out.
func answerOf(kind string, object runtime.Object, err error, status func() Status) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	object.GetObjectKind().SetGroupVersionKind(batchv1alpha1.SchemeGroupVersion.WithKind(kind))
	return Answer{object, status()}, nil
}

func setStatus(s *batchv1alpha1.JobSetActionStatus) Status {
	return Status{UID: s.UID, Attempt: s.Attempt, Time: s.Time, Message: s.Message}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

// Look implements Target.
func (JobSet) Look(ctx context.Context, c *cli.Clients, name string, goal Goal, answer Answer) (Progress, error) {
	set, err := read(ctx, c, name)
	if err != nil {
		return Progress{}, err
	}
	return look(goal, set, answer.Status.UID, answer.Status.Attempt), nil
}

// read reads the set and its Jobs. Users who may only act on sets may not read Jobs, and need not.
func read(ctx context.Context, c *cli.Clients, name string) (view, error) {
	set, err := snapshot.Load(ctx, c, name, false)
	if !apierrors.IsForbidden(err) {
		return view{Set: set}, err
	}
	js, err := sets(c).Get(ctx, name, metav1.GetOptions{})
	return view{Set: &snapshot.Set{JobSet: js, Now: time.Now()}, blind: true}, err
}
