// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Progress is how far a sequence is.
type Progress struct {
	// Step is the number of the current step, counted from 1, of StepCount; 0 before the start.
	Step      int `json:"step"`
	StepCount int `json:"stepCount"`
	// StepName is the name of the current step. Absent before the start, and when all steps have completed.
	StepName string `json:"stepName,omitempty"`
	// Succeeded is the number of steps that have completed.
	Succeeded int `json:"succeeded"`
}

// StepOf is the number of the current step, of all, like "2/3".
func (p Progress) StepOf() string { return fmt.Sprintf("%d/%d", p.Step, p.StepCount) }

// SequenceSummary is the state of a sequence with its progress, as `kubectl get sequentialjobs -o wide` has them.
type SequenceSummary struct {
	Phase
	Progress
}

// SummarizeSequence returns the state of a sequence.
func SummarizeSequence(sj *batchv1alpha1.SequentialJob) SequenceSummary {
	s := SequenceSummary{
		Phase{State: string(helper.Phase(sj)), Reason: helper.Reason(sj), Message: cli.Clean(message(sj))},
		Progress{StepCount: helper.StepCount(&sj.Spec), Succeeded: int(sj.Status.State.Succeeded)},
	}
	s.Step = min(max(int(ptr.Deref(sj.Status.Progress.CurrentIndex, -1))+1, 0), s.StepCount)
	if s.Step > 0 && helper.Phase(sj) != batchv1alpha1.PhaseCompleted {
		s.StepName = helper.Steps(&sj.Spec)[s.Step-1].Name
	}
	return s
}

// message is the message of the condition that explains the state, which is the one that has its reason; "" while the sequence runs as it
// should.
func message(sj *batchv1alpha1.SequentialJob) string {
	if c := helper.Finished(sj); c != nil && c.Type == batchv1alpha1.ConditionComplete {
		return ""
	}
	if c := helper.Explanation(sj); c != nil {
		return c.Message
	}
	for _, cause := range []helper.Trouble{
		{Condition: batchv1alpha1.ConditionSuspended, Status: metav1.ConditionTrue},
		{Condition: batchv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
	} {
		if c := meta.FindStatusCondition(sj.Status.Conditions, cause.Condition); c != nil && c.Status == cause.Status {
			return c.Message
		}
	}
	return ""
}
