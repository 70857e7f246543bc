// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package action is the commands that act on objects through their subresources: restart, suspend, resume, cancel, retry,
// rollback and pause. Each is one typed request, answered by the server with what came of it; with --wait the command then follows the
// object until the controller has done it.
package action

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// action is one of the actions.
type action struct {
	// name is the name of the command, of the subresource and of the verb in sentences.
	name string
	// past is what the object was after the action.
	past string
	// oncePerAttempt means that the action is for the attempt that the user saw: asked for twice, it must not be done twice.
	oncePerAttempt bool
	// elsewhere is a merge patch that does the same to a JobSet on servers without the action; empty if nothing does.
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

	rollback = action{name: "rollback", past: "rolled back", oncePerAttempt: true, goal: GoalUpdated}
	pause    = action{name: "pause", past: "paused", goal: GoalPaused}
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
	// FromStep is the name, or the index, of the step from which a retry runs.
	FromStep string
	// Group is the index of the group that is restarted. Absent for all groups.
	Group *int32
	// ToRevision is the number of the revision to return to. 0 for the one before the current one.
	ToRevision int64
	// Preconditions are what the object must be like.
	Preconditions *Preconditions
}

// Preconditions are what an object must be like for a request.
type Preconditions struct {
	// UID is the UID of the object. Absent for any.
	UID *types.UID
	// Step is the name of the current step, for objects with steps. Empty for any.
	Step string
	// Attempt is the number of the current attempt. Absent for any.
	Attempt *int32
	// Generation is the generation of the object. Absent for any.
	Generation *int64
	// Restarts is the number of restarts of the group to restart. Absent for any.
	Restarts *int32
}

// Answer is what the server answered.
type Answer struct {
	// Object is the request with its status.
	Object runtime.Object
	// Status is the status of the object.
	Status Status
}

// Status is what every kind says about what came of a request.
type Status struct {
	// UID is the UID of the object.
	UID types.UID
	// Step is the name of the step on which the action had its effect, for objects with steps.
	Step string
	// Attempt is the number of the attempt that the action began, or ended.
	Attempt int32
	// Revision is the number of the revision to which the object was rolled back.
	Revision int64
	// Time is when the action took effect. Absent when it changed nothing.
	Time *metav1.MicroTime
	// Message says what happened.
	Message string
}

// Goal is the state of an object that an action leads to.
type Goal int

const (
	// GoalReady means that all Jobs are ready or have succeeded in the attempt that the action began, or a later one; and of objects with
	// groups, that all groups are ready.
	GoalReady Goal = iota
	// GoalSuspended means that no pod is left and the status of the object shows it.
	GoalSuspended
	// GoalStopped means that no Job runs or is being deleted any more.
	GoalStopped
	// GoalUpdated means that all groups are updated and ready.
	GoalUpdated
	// GoalPaused means that the controller has seen that it has to replace no further group.
	GoalPaused
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
	// Has returns whether the kind has the action of the name.
	Has(action string) bool
	// Preconditions reads the object and returns what makes a request mean this object in its present attempt.
	Preconditions(ctx context.Context, c *cli.Clients, name string) (*Preconditions, error)
	// Takes returns whether the kind has a flag that not all kinds have.
	Takes(flag string) bool
	// Send asks the server for the action of the name.
	Send(ctx context.Context, c *cli.Clients, action, name string, r Request, o metav1.CreateOptions) (Answer, error)
	// Look reads how far the object is after the answer.
	Look(ctx context.Context, c *cli.Clients, name string, goal Goal, answer Answer) (Progress, error)
}
