// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package action is the commands that act on JobSets through their subresources: restart, suspend, resume, cancel and
// retry. Each is one typed request, answered by the server with what came of it; with --wait the command then follows the
// set until the controller has done it.
package action

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
)

// kind is one of the actions.
type kind struct {
	// name is that of the command, of the subresource and of the verb in sentences.
	name string
	// past is what the set was after the action.
	past string
	// object is the kind of the request.
	object string
	// oncePerAttempt tells that the action is meant for the attempt that the user saw: asked for twice, it must not be done
	// twice.
	oncePerAttempt bool
	// elsewhere is a merge patch that does the same on servers without the action; empty if nothing does.
	elsewhere string
	// goal is what --wait waits for.
	goal goal
	// send asks the server.
	send func(context.Context, jobsetclient.JobSetInterface, string, request, metav1.CreateOptions) (answer, error)
}

// request is what the flags ask for.
type request struct {
	reason        string
	scope         batchv1alpha1.RestartScope
	replicatedJob string
	jobIndex      *int32
	counts        bool
	maxRestarts   int32
	preconditions *batchv1alpha1.ActionPreconditions
}

// answer is what the server answered.
type answer struct {
	object runtime.Object
	status batchv1alpha1.JobSetActionStatus
}

var restart = kind{
	name: "restart", past: "restarted", object: "JobSetRestart", oncePerAttempt: true, goal: goalReady,
	send: func(ctx context.Context, c jobsetclient.JobSetInterface, name string, r request, o metav1.CreateOptions) (answer, error) {
		out, err := c.Restart(ctx, name, &batchv1alpha1.JobSetRestart{
			TypeMeta: typeMeta("JobSetRestart"), ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1alpha1.JobSetRestartSpec{
				Scope: r.scope, ReplicatedJob: r.replicatedJob, JobIndex: r.jobIndex, Reason: r.reason,
				CountTowardsMaxRestarts: r.counts, Preconditions: r.preconditions,
			},
		}, o)
		if err != nil {
			return answer{}, err
		}
		return answer{out, out.Status}, nil
	},
}

var suspend = kind{
	name: "suspend", past: "suspended", object: "JobSetSuspend", goal: goalSuspended,
	elsewhere: `{"spec":{"suspend":true}}`,
	send: func(ctx context.Context, c jobsetclient.JobSetInterface, name string, r request, o metav1.CreateOptions) (answer, error) {
		out, err := c.Suspend(ctx, name, &batchv1alpha1.JobSetSuspend{
			TypeMeta: typeMeta("JobSetSuspend"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: r.plain(),
		}, o)
		if err != nil {
			return answer{}, err
		}
		return answer{out, out.Status}, nil
	},
}

var resume = kind{
	name: "resume", past: "resumed", object: "JobSetResume", goal: goalReady,
	elsewhere: `{"spec":{"suspend":false}}`,
	send: func(ctx context.Context, c jobsetclient.JobSetInterface, name string, r request, o metav1.CreateOptions) (answer, error) {
		out, err := c.Resume(ctx, name, &batchv1alpha1.JobSetResume{
			TypeMeta: typeMeta("JobSetResume"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: r.plain(),
		}, o)
		if err != nil {
			return answer{}, err
		}
		return answer{out, out.Status}, nil
	},
}

var cancel = kind{
	name: "cancel", past: "cancelled", object: "JobSetCancel", goal: goalStopped,
	send: func(ctx context.Context, c jobsetclient.JobSetInterface, name string, r request, o metav1.CreateOptions) (answer, error) {
		out, err := c.Cancel(ctx, name, &batchv1alpha1.JobSetCancel{
			TypeMeta: typeMeta("JobSetCancel"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: r.plain(),
		}, o)
		if err != nil {
			return answer{}, err
		}
		return answer{out, out.Status}, nil
	},
}

var retry = kind{
	name: "retry", past: "retried", object: "JobSetRetry", oncePerAttempt: true, goal: goalReady,
	send: func(ctx context.Context, c jobsetclient.JobSetInterface, name string, r request, o metav1.CreateOptions) (answer, error) {
		out, err := c.Retry(ctx, name, &batchv1alpha1.JobSetRetry{
			TypeMeta: typeMeta("JobSetRetry"), ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1alpha1.JobSetRetrySpec{Reason: r.reason, MaxRestarts: r.maxRestarts, Preconditions: r.preconditions},
		}, o)
		if err != nil {
			return answer{}, err
		}
		return answer{out, out.Status}, nil
	},
}

func (r request) plain() batchv1alpha1.JobSetActionSpec {
	return batchv1alpha1.JobSetActionSpec{Reason: r.reason, Preconditions: r.preconditions}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: kind}
}
