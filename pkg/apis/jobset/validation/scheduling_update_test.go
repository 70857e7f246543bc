// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// suspendedAs has the value of spec.suspend, and the condition if it has a status.
func suspendedAs(suspend bool, condition metav1.ConditionStatus) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.Suspend = ptr.To(suspend)
		if condition != "" {
			js.Status.Conditions = []metav1.Condition{{Type: jobset.ConditionSuspended, Status: condition, Reason: "JobsSuspended"}}
		}
	}
}

func TestSchedulingChangesWhileSuspended(t *testing.T) {
	const advice = "field is immutable unless the JobSet is suspended: set spec.suspend to true, and wait until the condition Suspended is True"
	halted, running := suspendedAs(true, metav1.ConditionTrue), suspendedAs(false, metav1.ConditionFalse)
	minCount := only("spec.scheduling.schedulingPolicy.gang.minCount", invalid, "was 8; "+advice)
	cases := map[string]struct {
		prev, next func(*jobset.JobSet)
		want       []refusal
	}{
		"while it runs":                   {prev: and(running, wholeSet(gangOf(8))), next: and(running, wholeSet(gangOf(9))), want: minCount},
		"the same while it runs":          {prev: and(running, wholeSet(gangOf(8))), next: and(running, wholeSet(gangOf(8)))},
		"while it is suspended":           {prev: and(halted, wholeSet(gangOf(8))), next: and(halted, wholeSet(gangOf(9)))},
		"in the write that suspends":      {prev: and(running, wholeSet(gangOf(8))), next: and(running, halted, wholeSet(gangOf(9))), want: minCount},
		"in the write that resumes":       {prev: and(halted, wholeSet(gangOf(8))), next: and(running, wholeSet(gangOf(9))), want: minCount},
		"before the Jobs are suspended":   {prev: and(suspendedAs(true, metav1.ConditionFalse), wholeSet(gangOf(8))), next: and(halted, wholeSet(gangOf(9))), want: minCount},
		"before there is a status":        {prev: and(suspendedAs(true, ""), wholeSet(gangOf(8))), next: and(suspendedAs(true, ""), wholeSet(gangOf(9))), want: minCount},
		"added while it runs":             {prev: running, next: and(running, wholeSet(nil)), want: only("spec.scheduling", invalid, "was not set; "+advice)},
		"removed while it runs":           {prev: and(running, wholeSet(nil)), next: running, want: only("spec.scheduling", invalid, "was set, now is not; "+advice)},
		"added while it is suspended":     {prev: halted, next: and(halted, wholeSet(nil))},
		"removed while it is suspended":   {prev: and(halted, wholeSet(nil)), next: halted},
		"to a bad value, while suspended": {prev: and(halted, wholeSet(nil)), next: and(halted, wholeSet(gangOf(-1))), want: only("spec.scheduling.schedulingPolicy.gang.minCount", invalid, "must be 1 or more; leave it out for all pods of the group")},
	}
	for name, tc := range cases {
		t.Run("8.4 "+name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetUpdate(train(tc.next), train(tc.prev), scheduled))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// A set with scheduling that was stored while the gate was on can still be suspended, resumed and labeled.
func TestStoredSchedulingIsTolerated(t *testing.T) {
	prev, next := train(wholeSet(gangOf(0))), train(wholeSet(gangOf(0)), suspendedAs(true, ""))
	if errs := validation.ValidateJobSetUpdate(next, prev, gates.Gates{}); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestSizeOfGangs(t *testing.T) {
	const advice = "parallelism and completions cannot be changed while spec.scheduling makes a gang of the pods; delete and recreate the JobSet"
	elastic := gates.Gates{JobSetWorkloadAwareSchedulingAPI: true, ElasticJobSet: true}
	grown := resize(ptr.To[int32](8), ptr.To[int32](8))
	refused := only("spec.replicatedJobs[1].template.spec", forbidden, advice)
	basic := entry("workers")
	basic.SchedulingPolicy = basicPolicy()
	cases := map[string]struct {
		scheduling func(*jobset.JobSet)
		want       []refusal
	}{
		"no groups":            {scheduling: func(*jobset.JobSet) {}},
		"a gang":               {scheduling: wholeSet(gangOf(0)), want: refused},
		"a gang by default":    {scheduling: wholeSet(nil), want: refused},
		"a gang of fewer pods": {scheduling: wholeSet(gangOf(2)), want: refused},
		"no gang":              {scheduling: wholeSet(basicPolicy())},
		"gangs of Jobs":        {scheduling: entries(entry("launcher"), perJob(nil, "workers")), want: refused},
		"another gang":         {scheduling: entries(entry("launcher"), basic)},
	}
	for name, tc := range cases {
		t.Run("8.4 "+name, func(t *testing.T) {
			got := refusals(validation.ValidateJobSetUpdate(train(tc.scheduling, grown), train(tc.scheduling), elastic))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
