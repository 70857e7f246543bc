// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

func conflict(sj *batch.SequentialJob, format string, args ...any) *apierrors.StatusError {
	return apierrors.NewConflict(batch.Resource("sequentialjobs"), sj.Name, fmt.Errorf(format, args...))
}

// finished returns the condition that says that the sequence has completed or failed permanently; nil if it has not.
func finished(sj *batch.SequentialJob) *metav1.Condition { return helper.Finished(Versioned(sj)) }

// checkUID refuses what was meant for another sequence of the name.
func checkUID(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions) error {
	if p == nil || p.UID == nil || *p.UID == sj.UID {
		return nil
	}
	return action.Unmet(conflict(sj, "preconditions.uid is %s, but the SequentialJob has the UID %s: it was deleted and recreated", *p.UID,
		sj.UID),
		metav1.CauseTypeFieldValueInvalid, "uid", "the SequentialJob was deleted and recreated")
}

// checkMeant refuses requests that were meant for another sequence of the name, or that none of our controllers would carry out.
func checkMeant(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions) error {
	if err := checkUID(sj, p); err != nil {
		return err
	}
	return checkManaged(sj)
}

// checkManaged refuses every action on sequences that are being deleted, or that another controller manages.
func checkManaged(sj *batch.SequentialJob) error {
	if sj.DeletionTimestamp != nil {
		return conflict(sj, "the SequentialJob is being deleted; recreate it after it is gone")
	}
	if helper.ManagedElsewhere(Versioned(sj)) {
		return conflict(sj, "the SequentialJob is managed by the controller %q (spec.managedBy); use that controller instead", *sj.Spec.ManagedBy)
	}
	return nil
}

// checkStep refuses what was meant for another step of the sequence, or another attempt of it.
func checkStep(sj *batch.SequentialJob, p *batch.SequentialJobPreconditions) error {
	if p == nil {
		return nil
	}
	at := currentOf(sj)
	state := fmt.Sprintf("step %q is current, which has not started", at.name)
	switch {
	case at.name == "":
		state = "all steps have completed"
	case at.step != nil:
		state = fmt.Sprintf("attempt %d of step %q is current", at.attempt(), at.name)
	}
	if p.Step != "" && p.Step != at.name {
		return action.Unmet(conflict(sj, "preconditions.step is %s, but %s", p.Step, state), metav1.CauseTypeFieldValueInvalid, "step", state)
	}
	if p.Attempt == nil || *p.Attempt == at.attempt() {
		return nil
	}
	kind := metav1.CauseTypeFieldValueInvalid
	if *p.Attempt > at.attempt() {
		kind = metav1.CauseTypeFieldValueNotFound
	}
	return action.Unmet(conflict(sj, "preconditions.attempt is %d, but %s", *p.Attempt, state), kind, "attempt", state)
}

// checkUnfinished refuses actions that only an unfinished sequence supports.
func checkUnfinished(sj *batch.SequentialJob, verb string) error {
	switch c := finished(sj); {
	case c == nil:
		return nil
	case c.Type == batchv1alpha1.ConditionComplete:
		return conflict(sj, "the SequentialJob has completed; there is nothing to %s; recreate it to run it again", verb)
	default:
		return conflict(sj, "the SequentialJob has failed (%s); there is nothing to %s; retry it instead", c.Reason, verb)
	}
}
