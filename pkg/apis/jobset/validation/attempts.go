// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// maxAttemptNameLength is the length of the names of objects in the history.
const maxAttemptNameLength = 253

var (
	attemptTriggers = []jobset.AttemptTrigger{
		jobset.TriggerStart, jobset.TriggerFailurePolicy, jobset.TriggerRequested, jobset.TriggerResume, jobset.TriggerPreemption,
		jobset.TriggerRetry,
	}
	attemptScopes   = []jobset.AttemptScope{jobset.ScopeJobSet, jobset.ScopeReplicatedJob, jobset.ScopeJob}
	attemptOutcomes = []jobset.AttemptOutcome{
		jobset.OutcomeCompleted, jobset.OutcomeFailed, jobset.OutcomeRestarted, jobset.OutcomeSuspended, jobset.OutcomeCancelled,
	}
)

// validateAttempts checks the entries of the history and their order.
func validateAttempts(attempts []jobset.Attempt, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range attempts {
		entry, p := &attempts[i], path.Index(i)
		switch {
		case entry.Number < 1:
			errs = append(errs, field.Invalid(p.Child("number"), entry.Number, "must be 1 or more"))
		case i > 0 && entry.Number <= attempts[i-1].Number:
			errs = append(errs, field.Invalid(p.Child("number"), entry.Number, "must be greater than that of the previous attempt"))
		}
		errs = append(errs, validateAttemptEnums(entry, p)...)
		errs = append(errs, validateAttemptEnd(entry, i == len(attempts)-1, p)...)
		errs = append(errs, validateAttemptLengths(entry, p)...)
		if entry.JobIndex != nil && *entry.JobIndex < 0 {
			errs = append(errs, field.Invalid(p.Child("jobIndex"), *entry.JobIndex, "must be 0 or more"))
		}
		if entry.FirstCause != nil {
			errs = append(errs, ValidateCause(entry.FirstCause, p.Child("firstCause"))...)
		}
		if entry.Checkpoint != nil {
			errs = append(errs, validateCheckpoint(entry.Checkpoint, p.Child("checkpoint"))...)
		}
		errs = append(errs, validateAvoidedNodes(entry.AvoidedNodes, p.Child("avoidedNodes"))...)
	}
	return errs
}

func validateAttemptEnums(entry *jobset.Attempt, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(attemptTriggers, entry.Trigger) {
		errs = append(errs, field.NotSupported(path.Child("trigger"), entry.Trigger, attemptTriggers))
	}
	if !slices.Contains(attemptScopes, entry.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), entry.Scope, attemptScopes))
	}
	if entry.Outcome != "" && !slices.Contains(attemptOutcomes, entry.Outcome) {
		errs = append(errs, field.NotSupported(path.Child("outcome"), entry.Outcome, attemptOutcomes))
	}
	return errs
}

// validateAttemptEnd checks that an attempt has ended with an outcome or runs without, and that only the last one runs.
func validateAttemptEnd(entry *jobset.Attempt, last bool, path *field.Path) field.ErrorList {
	switch {
	case entry.EndTime != nil && entry.Outcome == "":
		return field.ErrorList{field.Required(path.Child("outcome"), "must be set when endTime is set")}
	case entry.EndTime == nil && entry.Outcome != "":
		return field.ErrorList{field.Required(path.Child("endTime"), "must be set when outcome is set")}
	case entry.EndTime == nil && !last:
		return field.ErrorList{field.Required(path.Child("endTime"), "must be set for every attempt but the last")}
	}
	return nil
}

func validateAttemptLengths(entry *jobset.Attempt, path *field.Path) field.ErrorList {
	return slices.Concat(
		generic.BytesWithin(entry.ReplicatedJob, maxAttemptNameLength, path.Child("replicatedJob")),
		generic.BytesWithin(entry.Rule, maxRuleNameLength, path.Child("rule")),
		generic.BytesWithin(entry.User, jobset.MaxAttemptUserBytes, path.Child("user")),
		generic.CharactersWithin(entry.Reason, jobset.MaxAttemptReasonCharacters, path.Child("reason")),
		generic.BytesWithin(entry.EndUser, jobset.MaxAttemptUserBytes, path.Child("endUser")),
		generic.CharactersWithin(entry.EndReason, jobset.MaxAttemptReasonCharacters, path.Child("endReason")),
	)
}

// ValidateCause checks the first cause of a failure.
func ValidateCause(cause *jobset.FailureCause, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if cause.Job == "" {
		errs = append(errs, field.Required(path.Child("job"), "must be the name of the failed Job"))
	}
	return append(errs, slices.Concat(
		generic.BytesWithin(cause.Job, maxAttemptNameLength, path.Child("job")),
		generic.BytesWithin(cause.Pod, maxAttemptNameLength, path.Child("pod")),
		generic.BytesWithin(cause.Node, maxAttemptNameLength, path.Child("node")),
		generic.BytesWithin(cause.Container, maxAttemptNameLength, path.Child("container")),
		generic.BytesWithin(cause.Reason, jobset.MaxCauseBytes, path.Child("reason")),
		generic.BytesWithin(cause.Message, jobset.MaxCauseBytes, path.Child("message")),
	)...)
}

// CheckpointStep returns the step of the last checkpoint that the job has reported in the annotations of its set. Its form
// is canonical: digits without a sign and without leading zeros.
func CheckpointStep(js *jobset.JobSet) (step int64, ok bool) {
	value := js.Annotations[jobset.CheckpointStepKey]
	step, err := strconv.ParseInt(value, 10, 64)
	return step, err == nil && step >= 0 && strconv.FormatInt(step, 10) == value
}

func validateCheckpointStep(js *jobset.JobSet) field.ErrorList {
	value, reported := js.Annotations[jobset.CheckpointStepKey]
	if _, ok := CheckpointStep(js); ok || !reported {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(jobset.CheckpointStepKey)
	return field.ErrorList{field.Invalid(path, value, "must be a decimal number from 0 to 9223372036854775807, the step of the last "+
		"checkpoint")}
}

func validateCheckpoint(c *jobset.Checkpoint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Step < 0 {
		errs = append(errs, field.Invalid(path.Child("step"), c.Step, "must be 0 or more"))
	}
	if c.Time == nil {
		errs = append(errs, field.Required(path.Child("time"), "must be the time of the report"))
	}
	if c.GoodMilliseconds < 0 {
		errs = append(errs, field.Invalid(path.Child("goodMilliseconds"), c.GoodMilliseconds, "must be 0 or more"))
	}
	return errs
}
