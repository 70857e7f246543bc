// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
)

const (
	// forbidden is what users read about a change of steps that updateStrategy does not allow.
	forbidden = "cannot be changed after a step has started while updateStrategy.type is Forbid; set it to Continue or Restart first"
	// completed is what they read about a step that never runs again.
	completed = "cannot be changed, because the step has completed; create another SequentialJob"
	// kept is what they read about a step that must stay where it is.
	kept = "must be %q: a step that has %s cannot be moved, renamed or removed"
	// conditionComplete is the condition that all steps have completed.
	conditionComplete = "Complete"
)

// validateSequenceTransition checks what may change from one spec to the next (docs/reference/batch.md#changes).
func validateSequenceTransition(next, prev *batch.SequentialJob) field.ErrorList {
	path := field.NewPath("spec")
	errs := generic.Changed(next.Spec.ManagedBy, prev.Spec.ManagedBy, path.Child("managedBy"), func(string) string {
		return "field is immutable: cannot be changed after creation; delete and recreate the SequentialJob"
	})
	if prev.Status.Progress.CurrentIndex == nil && len(prev.Status.Steps) == 0 {
		return errs // nothing has started
	}
	if forbids(&next.Spec) || forbids(&prev.Spec) {
		return append(errs, validateNoStepChanges(&next.Spec, &prev.Spec, path)...)
	}
	return append(errs, validateStartedSteps(next, prev, path)...)
}

func forbids(spec *batch.SequentialJobSpec) bool {
	return spec.UpdateStrategy != nil && spec.UpdateStrategy.Type == batch.UpdateForbid
}

// validateNoStepChanges checks that no step, and nothing that steps share, has changed.
func validateNoStepChanges(next, prev *batch.SequentialJobSpec, path *field.Path) field.ErrorList {
	explain := func(string) string { return forbidden }
	errs := generic.Changed(next.Containers, prev.Containers, path.Child("containers"), explain)
	errs = append(errs, generic.Changed(next.Steps, prev.Steps, path.Child("steps"), explain)...)
	errs = append(errs, generic.Changed(next.Template, prev.Template, path.Child("template"), explain)...)
	return append(errs, generic.Changed(next.BackoffLimit, prev.BackoffLimit, path.Child("backoffLimit"), explain)...)
}

// validateStartedSteps checks that started steps keep their position, and that completed steps do not change. The
// fields that all steps share may change, because the change affects unfinished steps only.
func validateStartedSteps(next, prev *batch.SequentialJob, path *field.Path) field.ErrorList {
	is, was := stepsOf(&next.Spec, path), stepsOf(&prev.Spec, path)
	done := completedSteps(&prev.Status)
	var errs field.ErrorList
	for i := range min(startedSteps(&prev.Status), len(was)) {
		state := "started"
		if done[int32(i)] {
			state = "completed"
		}
		if i >= len(is) {
			return append(errs, field.Invalid(stepList(&next.Spec, path), field.OmitValueType{}, fmt.Sprintf(
				"must have the step %q at index %d: a step that has %s cannot be moved, renamed or removed", was[i].name, i, state)))
		}
		if is[i].name != was[i].name {
			return append(errs, field.Invalid(is[i].path.Child("name"), is[i].name, fmt.Sprintf(kept, was[i].name, state)))
		}
		errs = append(errs, validateStartedStep(&is[i], &was[i], done[int32(i)])...)
	}
	if len(is) > len(was) && isComplete(&prev.Status) {
		errs = append(errs, field.Invalid(stepList(&next.Spec, path), field.OmitValueType{}, fmt.Sprintf(
			"must have %d steps, because all of them have completed; create another SequentialJob for more", len(was))))
	}
	return errs
}

// validateStartedStep checks the change of a step that was started. One that has not ended can be changed, but its child stays
// a Job, or a JobSet.
func validateStartedStep(is, was *step, done bool) field.ErrorList {
	switch {
	case (is.jobSet == nil) != (was.jobSet == nil):
		return field.ErrorList{field.Forbidden(is.path, fmt.Sprintf("must describe a %s, because the step has started", was.childKind()))}
	case !done:
		return nil
	}
	explain := func(string) string { return completed }
	switch {
	case is.container != nil && was.container != nil:
		return generic.Changed(*is.container, *was.container, is.containerPath(), explain)
	case is.job != nil && was.job != nil:
		return generic.Changed(*is.job, *was.job, is.path.Child("job"), explain)
	case is.jobSet != nil && was.jobSet != nil:
		return generic.Changed(*is.jobSet, *was.jobSet, is.path.Child("jobSet"), explain)
	case equality.Semantic.DeepEqual(is.job, was.job) && equality.Semantic.DeepEqual(is.container, was.container):
		return nil
	}
	return field.ErrorList{field.Forbidden(is.path, completed)}
}

// stepList returns the path of the list that holds the steps.
func stepList(spec *batch.SequentialJobSpec, path *field.Path) *field.Path {
	if len(spec.Steps) > 0 {
		return path.Child("steps")
	}
	return path.Child("containers")
}

// startedSteps returns how many steps were started. Those that a retry from an earlier step has reset count as not started.
func startedSteps(status *batch.SequentialJobStatus) int {
	for i := range status.Steps {
		if status.Steps[i].State == batch.StepPending {
			return i
		}
	}
	return len(status.Steps)
}

// completedSteps returns the indexes of the steps that have completed.
func completedSteps(status *batch.SequentialJobStatus) map[int32]bool {
	done := make(map[int32]bool, len(status.Progress.CompletedIndices))
	for _, index := range status.Progress.CompletedIndices {
		done[index] = true
	}
	for i := range status.Steps {
		if status.Steps[i].State == batch.StepSucceeded && i < startedSteps(status) {
			done[int32(i)] = true
		}
	}
	return done
}

// isComplete returns whether all steps have completed.
func isComplete(status *batch.SequentialJobStatus) bool {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == conditionComplete && c.Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}
