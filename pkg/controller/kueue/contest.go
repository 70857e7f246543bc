// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// This file bounds changes of Workloads that another party undoes each time.

// What others may change back.
const (
	theActivation = "spec.active"
	thePodSets    = "spec.podSets"
	theAdmission  = "status.admission"
	theFinalizers = "metadata.finalizers"
)

// guarded makes a change of a Workload for a sequence, unless another party undoes it each time. What names the field, and value is its
// next value. A change to another value is no reversal.
func (w *Watch) guarded(sequence metav1.Object, workload *plan.Workload, what, value string, change func() error) error {
	if err := w.guard.ChangingTo(sequence, workload, what, value); err != nil {
		return err
	}
	err := change()
	if err == nil {
		w.guard.ChangedTo(sequence, workload, what, value)
	}
	return err
}

// contestOf names the field of a Workload that a plan changes, and the value. Times and reasons of conditions are no part of it: the next
// write of the same condition has others.
func contestOf(p plan.HoldPlan) (what, value string) {
	switch {
	case p.Patch != nil:
		return children.OneOf(namesOf(p.Patch)), children.ValueOf(p.Patch)
	case p.Release != nil:
		return theAdmission, evictionOf(p.Release)
	case p.Apply != nil:
		return conditionNamed(p.Apply.Type), string(p.Apply.Status)
	}
	return theFinalizers, ""
}

func conditionNamed(conditionType string) string { return "the condition " + conditionType }

// namesOf names the fields of a patch.
func namesOf(p *plan.HoldPatch) (fields []string) {
	if p.Activation != plan.Keep {
		fields = append(fields, theActivation)
	}
	if p.PodSets != nil {
		fields = append(fields, thePodSets)
	}
	if p.QueueName != nil {
		fields = append(fields, "spec.queueName")
	}
	if p.Priority != nil {
		fields = append(fields, "spec.priority")
	}
	return fields
}

// evictionOf names the eviction after which quota is given back. Kueue may admit the Workload again, and evict it once more: to give the
// quota back then is no reversal.
func evictionOf(conditions []metav1.Condition) string {
	for i := range conditions {
		if c := &conditions[i]; c.Type == plan.ConditionEvicted {
			return c.LastTransitionTime.UTC().Format(time.RFC3339) + " " + strconv.FormatInt(c.ObservedGeneration, 10)
		}
	}
	return ""
}
