// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// Retry makes a failed sequence unfinished again: it runs from the step that was current when it failed, or from an earlier one,
// and the time that counts towards its deadline begins at 0. One that is suspended stays so.
func Retry(sj *batch.SequentialJob, spec *batch.SequentialJobRetrySpec, call Call) (*batch.SequentialJobActionStatus, error) {
	if err := checkMeant(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if answer, err := retriedBefore(sj, spec, call); err != nil || answer != nil {
		return answer, err
	}
	if err := checkStep(sj, spec.Preconditions); err != nil {
		return nil, err
	}
	if err := checkRetry(sj); err != nil {
		return nil, err
	}
	from, wrong := retryFrom(sj, spec.FromStep)
	if wrong != nil {
		return nil, apierrors.NewInvalid(batch.Kind("SequentialJobRetry"), sj.Name, field.ErrorList{wrong})
	}
	goBack(sj, from, call)
	setCondition(sj, call.second(), batchv1alpha1.ConditionFailed, metav1.ConditionFalse, batchv1alpha1.ReasonRetried,
		call.signed("retried", spec.Reason))
	if available := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionAvailable); available != nil &&
		available.Reason == batchv1alpha1.ReasonFailed {
		setCondition(sj, call.second(), batchv1alpha1.ConditionAvailable, metav1.ConditionTrue, batchv1alpha1.ReasonRetried,
			call.signed("retried", spec.Reason))
	}
	record(sj, batch.ActionRetry, spec.Reason, call)
	return recorded(sj), nil
}

// goBack makes the step the current one. What is recorded about it and later ones is the number of their attempts: their children
// may still exist, and must not be taken for those of the attempts that follow.
func goBack(sj *batch.SequentialJob, from int, call Call) {
	s := &sj.Status
	if len(s.Steps) > 0 {
		s.Progress.CurrentIndex = ptr.To(int32(from))
	}
	s.Progress.CompletedIndices = slices.DeleteFunc(slices.Clone(s.Progress.CompletedIndices), func(i int32) bool { return int(i) >= from })
	s.Progress.FailedIndex, s.Progress.FailureReason = nil, ""
	s.State.Succeeded, s.State.Failed = int32(len(s.Progress.CompletedIndices)), 0
	s.CompletionTime, s.ActiveSeconds, s.ActiveSince = nil, 0, nil
	if from >= len(s.Steps) {
		return
	}
	RunAgain(sj, from, call)
	for i := from + 1; i < len(s.Steps); i++ {
		later := &s.Steps[i]
		*later = batch.SequentialJobStepStatus{
			Name: later.Name, Kind: later.Kind, ChildName: later.ChildName, State: batch.StepPending, Attempts: later.Attempts,
		}
	}
}

// retryFrom returns the index of the step of the name; for no name that of the current step, or of the next one if the current step
// had completed when the sequence was cancelled.
func retryFrom(sj *batch.SequentialJob, name string) (int, *field.Error) {
	path, at := field.NewPath("spec", "fromStep"), currentOf(sj)
	latest, why := at.index, "the one that failed was removed"
	if at.step != nil && at.step.State == batch.StepSucceeded {
		latest, why = at.index+1, "the last one has completed"
	}
	var names []string
	for _, step := range helper.Steps(&Versioned(sj).Spec) {
		names = append(names, step.Name)
	}
	index := slices.Index(names, name)
	switch {
	case name == "" && latest < len(names):
		return latest, nil
	case name == "":
		return 0, field.Required(path, fmt.Sprintf("must name the step from which to run again, since %s: %s", why, strings.Join(names, ", ")))
	case index < 0:
		return 0, field.Invalid(path, name, "must be the name of a step of the SequentialJob: "+strings.Join(names, ", "))
	case index > latest:
		return 0, field.Invalid(path, name, fmt.Sprintf("must be the step that failed, %s, or one before it", names[latest]))
	}
	return index, nil
}

// retriedBefore returns the response to the first request to retry the sequence after the attempt; nil if there was none.
func retriedBefore(sj *batch.SequentialJob, spec *batch.SequentialJobRetrySpec, call Call) (*batch.SequentialJobActionStatus, error) {
	last, p := sj.Status.LastAction, spec.Preconditions
	if last == nil || last.Action != batch.ActionRetry || p == nil || p.Attempt == nil || spec.FromStep != "" && spec.FromStep != last.Step {
		return nil, nil
	}
	answer, err := begunBefore(sj, p, batch.ActionRetry, call)
	if err != nil || answer != nil || spec.FromStep == "" || !retriedFromEarlier(sj, p) {
		return answer, err
	}
	return stillSo(sj, call)
}

// retriedFromEarlier returns whether the last retry ended the attempt of the preconditions, and ran the sequence again from a step
// before the one that the attempt was of.
func retriedFromEarlier(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions) bool {
	steps := sj.Status.Steps
	if len(steps) == 0 {
		return false
	}
	failed := &steps[len(steps)-1]
	if at := slices.IndexFunc(steps, func(s batch.SequentialJobStepStatus) bool { return s.Name == p.Step }); at >= 0 {
		failed = &steps[at]
	}
	if failed.Name == sj.Status.LastAction.Step || p.Step != "" && p.Step != failed.Name {
		return false
	}
	if failed.State == batch.StepPending {
		return failed.Attempts == *p.Attempt
	}
	return failed.Attempts == *p.Attempt+1
}

// checkRetry refuses to retry what has not failed.
func checkRetry(sj *batch.SequentialJob) error {
	const only = "and only a failed SequentialJob can be retried"
	switch c := finished(sj); {
	case c != nil && c.Type == batchv1alpha1.ConditionComplete:
		return conflict(sj, "the SequentialJob has completed, %s; recreate it to run it again", only)
	case c != nil:
		return nil
	case suspended(sj):
		return conflict(sj, "the SequentialJob is suspended, %s; resume it instead", only)
	case currentOf(sj).started():
		return conflict(sj, "the SequentialJob has not finished, %s; restart its current step instead", only)
	}
	return conflict(sj, "the SequentialJob has not finished, %s; step %q starts by itself", only, currentOf(sj).name)
}
