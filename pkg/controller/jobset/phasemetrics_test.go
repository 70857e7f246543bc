// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// TestSetsAreCountedByPhase leads one set through all phases, beside another one that stays as it is.
func TestSetsAreCountedByPhase(t *testing.T) {
	p := newPhaseCounts()
	other := newSet()
	other.Name = "other"
	set := func(js *jobsetv1alpha2.JobSet) { p.Set(cache.MetaObjectToName(js), helper.Phase(js)) }
	set(other)
	js := newSet()
	count := func(ready, active int32) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: ready, Active: active}}
	}
	condition := func(conditionType string, status metav1.ConditionStatus) {
		js.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: status}}
	}
	diff(t, "before the controller leads", []string(nil), phasesOf(t, p))
	p.Show()
	for _, step := range []struct {
		phase  string
		change func()
	}{
		{helper.PhasePending, func() {}},
		{helper.PhaseStarting, func() { count(1, 2) }},
		{helper.PhaseRunning, func() { count(2, 2) }},
		{helper.PhaseRestarting, func() { condition(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue) }},
		{helper.PhaseSuspended, func() { js.Spec.Suspend = ptr.To(true) }},
		{helper.PhaseFailed, func() { condition(jobsetv1alpha2.JobSetFailed, metav1.ConditionTrue) }},
		{helper.PhaseCompleted, func() { condition(jobsetv1alpha2.JobSetCompleted, metav1.ConditionTrue) }},
		{helper.PhaseTerminating, func() { js.DeletionTimestamp = ptr.To(metav1.NewTime(begin)) }},
	} {
		step.change()
		js = js.DeepCopy()
		set(js)
		set(js)
		diff(t, "sets, one of them "+step.phase, countedAs(step.phase, helper.PhasePending), phasesOf(t, p))
	}
	p.Forget(cache.MetaObjectToName(js))
	p.Forget(cache.MetaObjectToName(js))
	diff(t, "sets when one is gone", countedAs(helper.PhasePending), phasesOf(t, p))
	diff(t, "the phase of the set that is gone", "", p.Of(cache.MetaObjectToName(js)))
}

func TestHandlersCountSetsByPhase(t *testing.T) {
	r := newRig(t, newSet())
	js := newSet()
	js.Name = "counted-set"
	name := cache.MetaObjectToName(js)
	handlers := r.measure()
	handlers.OnAdd(js, true)
	diff(t, "phase of a new set", helper.PhasePending, phases.Of(name))
	next := js.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	handlers.OnUpdate(js, next)
	diff(t, "phase of a changed set", helper.PhaseSuspended, phases.Of(name))
	handlers.OnDelete(next)
	diff(t, "phase of a set that is gone", "", phases.Of(name))
}

// countedAs are the lines of the metric for sets in these phases.
func countedAs(sets ...string) (lines []string) {
	counts := map[string]int{}
	for _, phase := range sets {
		counts[phase]++
	}
	for _, phase := range []string{"Completed", "Failed", "Pending", "Restarting", "Running", "Starting", "Suspended", "Terminating", "Unreadable"} {
		lines = append(lines, fmt.Sprintf("jobset_jobsets{phase=%q} %d", phase, counts[phase]))
	}
	return lines
}

func phasesOf(t *testing.T, p *children.PhaseCounts) []string {
	t.Helper()
	p.ClearState() // a collector can be registered once
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(p); err != nil {
		t.Fatal(err)
	}
	return gathered(t, registry)
}
