// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	jobset "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// Bounds of the texts of a status, in bytes.
const (
	maxStatusText = 1024
	maxUserBytes  = 256
	maxObjectName = 253
	maxUID        = 128
)

var (
	stepKinds  = []batch.StepKind{batch.StepKindJob, batch.StepKindJobSet}
	stepStates = []batch.StepState{
		batch.StepPending, batch.StepStarting, batch.StepWaiting, batch.StepRunning, batch.StepSuspended, batch.StepSucceeded, batch.StepFailed,
	}
	sequenceActions = []batch.SequentialJobAction{
		batch.ActionRestart, batch.ActionRetry, batch.ActionSuspend, batch.ActionResume, batch.ActionCancel,
	}
)

// ValidateSequentialJobStatusUpdate checks a change of the status by a controller. What has happened stays: attempts that were
// counted, and steps that have completed. Otherwise a writer with an old copy could make steps run again.
func ValidateSequentialJobStatusUpdate(next, prev *batch.SequentialJob) field.ErrorList {
	errs := ValidateSequentialJobAction(next, prev)
	if len(errs) > 0 {
		return errs
	}
	return validateHistory(next, prev, field.NewPath("status"))
}

// ValidateSequentialJobAction checks a change of the status by an action of a user, who may take back that steps have completed.
func ValidateSequentialJobAction(next, prev *batch.SequentialJob) field.ErrorList {
	return generic.Status(next, prev, sequenceStatusSizes, validateSequenceStatus)
}

func sequenceStatusSizes(sj *batch.SequentialJob) *generic.Sizes {
	s, path, status := &generic.Sizes{}, field.NewPath("status"), &sj.Status
	s.List(path.Child("conditions"), len(status.Conditions), generic.MaxConditions)
	s.List(path.Child("steps"), len(status.Steps), MaxSteps)
	s.List(path.Child("progress", "completedIndices"), len(status.Progress.CompletedIndices), MaxSteps)
	return s
}

func validateSequenceStatus(sj *batch.SequentialJob) field.ErrorList {
	path, status := field.NewPath("status"), &sj.Status
	count := len(sj.Spec.Containers) + len(sj.Spec.Steps)
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	state := path.Child("state")
	errs = append(errs, slices.Concat(
		generic.Count(status.State.Active, state.Child("active")),
		generic.Count(status.State.Succeeded, state.Child("succeeded")),
		generic.Count(status.State.Failed, state.Child("failed")),
		generic.Count(status.ObservedGeneration, path.Child("observedGeneration")),
		generic.Count(status.ActiveSeconds, path.Child("activeSeconds")),
		validateProgress(&status.Progress, count, path.Child("progress")),
	)...)
	steps := path.Child("steps")
	for i := range status.Steps {
		errs = append(errs, validateStepStatus(&status.Steps[i], steps.Index(i))...)
	}
	if action := status.LastAction; action != nil {
		errs = append(errs, validateLastAction(action, path.Child("lastAction"))...)
	}
	return errs
}

// validateProgress checks that each index belongs to a step.
func validateProgress(progress *batch.SequentialJobProgress, steps int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	within := func(p *field.Path, index int32, limit int) {
		if index < 0 || int(index) > limit {
			errs = append(errs, field.Invalid(p, index, fmt.Sprintf("must be from 0 to %d, because there are %d steps", limit, steps)))
		}
	}
	if progress.CurrentIndex != nil {
		within(path.Child("currentIndex"), *progress.CurrentIndex, steps)
	}
	if progress.FailedIndex != nil {
		within(path.Child("failedIndex"), *progress.FailedIndex, steps-1)
	}
	completed := path.Child("completedIndices")
	for i, index := range progress.CompletedIndices {
		within(completed.Index(i), index, steps-1)
		if i > 0 && index <= progress.CompletedIndices[i-1] {
			errs = append(errs, field.Invalid(completed.Index(i), index, "must be greater than the index before it"))
		}
	}
	return append(errs, generic.BytesWithin(progress.FailureReason, maxStatusText, path.Child("failureReason"))...)
}

func validateStepStatus(status *batch.SequentialJobStepStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if status.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be the name of the step"))
	}
	if status.Kind != "" && !slices.Contains(stepKinds, status.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), status.Kind, stepKinds))
	}
	if !slices.Contains(stepStates, status.State) {
		errs = append(errs, field.NotSupported(path.Child("state"), status.State, stepStates))
	}
	if status.FirstCause != nil {
		errs = append(errs, jobset.ValidateCause(status.FirstCause, path.Child("firstCause"))...)
	}
	return append(errs, slices.Concat(
		generic.Count(status.Attempts, path.Child("attempts")),
		generic.BytesWithin(status.Name, maxObjectName, path.Child("name")),
		generic.BytesWithin(status.ChildName, maxObjectName, path.Child("childName")),
		generic.BytesWithin(string(status.ChildUID), maxUID, path.Child("childUID")),
		generic.BytesWithin(status.Reason, maxStatusText, path.Child("reason")),
		generic.BytesWithin(status.Message, maxStatusText, path.Child("message")),
	)...)
}

func validateLastAction(action *batch.SequentialJobLastAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(sequenceActions, action.Action) {
		errs = append(errs, field.NotSupported(path.Child("action"), action.Action, sequenceActions))
	}
	return append(errs, slices.Concat(
		generic.BytesWithin(action.User, maxUserBytes, path.Child("user")),
		generic.CharactersWithin(action.Reason, maxReasonLength, path.Child("reason")),
		generic.BytesWithin(action.Step, maxObjectName, path.Child("step")),
		generic.Count(action.Attempt, path.Child("attempt")),
	)...)
}

// validateHistory checks that nothing that has happened is taken back. A step that was to run again after a retry, and
// was removed from the spec since, may be dropped: it is not one of the sequence any more.
func validateHistory(nextJob, prevJob *batch.SequentialJob, path *field.Path) field.ErrorList {
	next, prev, count := &nextJob.Status, &prevJob.Status, len(prevJob.Spec.Containers)+len(prevJob.Spec.Steps)
	var errs field.ErrorList
	steps := path.Child("steps")
	kept := slices.IndexFunc(prev.Steps[min(count, len(prev.Steps)):],
		func(s batch.SequentialJobStepStatus) bool { return s.State != batch.StepPending }) >= 0
	if is, was := len(next.Steps), len(prev.Steps); is < was && (kept || is < count) {
		errs = append(errs, field.Invalid(steps, field.OmitValueType{}, fmt.Sprintf("must keep the %d steps that were started; it has %d", was,
			is)))
	}
	for i := range min(len(next.Steps), len(prev.Steps)) {
		if is, was := next.Steps[i].Attempts, prev.Steps[i].Attempts; is < was {
			errs = append(errs, field.Invalid(steps.Index(i).Child("attempts"), is, fmt.Sprintf("must be %d or more, the number that is stored",
				was)))
		}
	}
	for _, index := range prev.Progress.CompletedIndices {
		if !slices.Contains(next.Progress.CompletedIndices, index) {
			errs = append(errs, field.Invalid(path.Child("progress", "completedIndices"), field.OmitValueType{},
				fmt.Sprintf("must keep %d, because the step has completed: only the action retry runs it again", index)))
		}
	}
	return errs
}
