// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package action is the commands that act on objects through their subresources: restart, suspend, resume, cancel and
// retry. Each is one typed request, answered by the server with what came of it; with --wait the command then follows the
// object until the controller has done it.
package action

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// action is one of the actions.
type action struct {
	// name is that of the command, of the subresource and of the verb in sentences.
	name string
	// past is what the object was after the action.
	past string
	// oncePerAttempt means that the action is for the attempt that the user saw: asked for twice, it must not be done twice.
	oncePerAttempt bool
	// elsewhere is a merge patch that does the same on servers without the action; empty if nothing does.
	elsewhere string
	// goal is what --wait waits for.
	goal Goal
}

var (
	restart = action{name: "restart", past: "restarted", oncePerAttempt: true, goal: GoalReady}
	suspend = action{name: "suspend", past: "suspended", goal: GoalSuspended, elsewhere: `{"spec":{"suspend":true}}`}
	resume  = action{name: "resume", past: "resumed", goal: GoalReady, elsewhere: `{"spec":{"suspend":false}}`}
	cancel  = action{name: "cancel", past: "cancelled", goal: GoalStopped}
	retry   = action{name: "retry", past: "retried", oncePerAttempt: true, goal: GoalReady}
)

// Request is what the flags ask for.
type Request struct {
	// Reason is recorded in the history.
	Reason string
	// Scope, ReplicatedJob and JobIndex say what to restart.
	Scope         batchv1alpha1.RestartScope
	ReplicatedJob string
	JobIndex      *int32
	// Counts makes a restart count towards the limit.
	Counts bool
	// Force restarts also what an earlier request has restarted and what is not ready yet.
	Force bool
	// MaxRestarts are the restarts that a retry adds to the limit.
	MaxRestarts int32
	// Preconditions are what the object must be like.
	Preconditions *batchv1alpha1.ActionPreconditions
}

// Answer is what the server answered.
type Answer struct {
	// Object is the request with its status.
	Object runtime.Object
	// Status is that of the object.
	Status batchv1alpha1.JobSetActionStatus
}

// Goal is the state of an object that an action leads to.
type Goal int

const (
	// GoalReady means that all Jobs are ready or have succeeded in the attempt that the action began, or a later one.
	GoalReady Goal = iota
	// GoalSuspended means that no pod is left and the status of the object shows it.
	GoalSuspended
	// GoalStopped means that no Job runs or is being deleted any more.
	GoalStopped
)

// Progress is how far an object is on the way to the goal.
type Progress struct {
	// Text says it in numbers. It changes when the numbers do.
	Text string
	// Reached means that the goal is reached; Text then describes the state of the object.
	Reached bool
	// Failure says why the goal will not be reached.
	Failure string
}

// Target is how objects of a kind take actions.
type Target interface {
	// Preconditions reads the object and returns what makes a request mean this object in its present attempt.
	Preconditions(ctx context.Context, c *cli.Clients, name string) (*batchv1alpha1.ActionPreconditions, error)
	// Send asks the server for the action of the name.
	Send(ctx context.Context, c *cli.Clients, action, name string, r Request, o metav1.CreateOptions) (Answer, error)
	// Look reads how far the object is after the answer.
	Look(ctx context.Context, c *cli.Clients, name string, goal Goal, answer Answer) (Progress, error)
}
