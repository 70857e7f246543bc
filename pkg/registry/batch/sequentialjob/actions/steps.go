// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"math"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// position is the current step of a sequence: the one that runs, is next, or failed.
type position struct {
	index int
	// name is empty once all steps have completed.
	name string
	// step is what is recorded about the step, in the status of the sequence; nil if it was never started.
	step *batch.SequentialJobStepStatus
}

// attempt is the number of the current attempt; 0 for a step that was never started.
func (p position) attempt() int32 {
	if p.step == nil {
		return 0
	}
	return p.step.Attempts
}

// started returns whether the step has begun since the start of the sequence, or its last retry.
func (p position) started() bool { return p.step != nil && p.step.State != batch.StepPending }

// currentOf returns the current step. A step that runs keeps the name with which it was started.
func currentOf(sj *batch.SequentialJob) position {
	v := Versioned(sj)
	p := position{index: helper.CurrentIndex(&v.Status)}
	if helper.CurrentStep(&v.Status) != nil {
		p.step = &sj.Status.Steps[p.index]
	}
	steps := helper.Steps(&v.Spec)
	switch {
	case p.started():
		p.name = p.step.Name
	case p.index < len(steps):
		p.name = steps[p.index].Name
	}
	return p
}

// RunAgain makes a step that was started run again, as the spec describes it now, in its next attempt. The controller stops the
// child of the earlier one.
func RunAgain(sj *batch.SequentialJob, index int, call Call) {
	before := &sj.Status.Steps[index]
	next := batch.SequentialJobStepStatus{
		Name: before.Name, Kind: before.Kind, ChildName: helper.ChildName(sj.Name, index),
		State: batch.StepStarting, StartTime: ptr.To(call.second()), Attempts: int32(min(int64(before.Attempts)+1, math.MaxInt32)),
	}
	if steps := helper.Steps(&Versioned(sj).Spec); index < len(steps) {
		next.Name, next.Kind = steps[index].Name, batch.StepKind(steps[index].Kind())
	}
	*before = next
}

func suspended(sj *batch.SequentialJob) bool { return ptr.Deref(sj.Spec.Suspend, false) }
