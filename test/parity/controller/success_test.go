// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func successPolicy(operator jobsetv1alpha2.Operator, targets ...string) func(*jobSet) {
	return func(js *jobSet) {
		js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: operator, TargetReplicatedJobs: targets}
	}
}

func TestRow7_3_05_SuccessPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		policy func(*jobSet)
		// The set goes on after the first Jobs and completes with the last one.
		first []string
		last  string
	}{
		"All without targets needs every Job": {
			successPolicy(jobsetv1alpha2.OperatorAll), []string{jobA, jobB0, jobB1}, jobB2},
		"All of b needs every Job of b": {
			successPolicy(jobsetv1alpha2.OperatorAll, groupB), []string{jobA, jobB0, jobB1}, jobB2},
		"All of b does not need a": {
			successPolicy(jobsetv1alpha2.OperatorAll, groupB), []string{jobB2, jobB0}, jobB1},
		"Any of b is met by one Job of b": {
			successPolicy(jobsetv1alpha2.OperatorAny, groupB), []string{jobA}, jobB1},
		"Any without targets is met by one Job": {
			successPolicy(jobsetv1alpha2.OperatorAny), nil, jobA},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(tc.policy))
			e.awaitJobs(running, allJobs...)
			if len(tc.first) > 0 {
				e.complete(tc.first...)
				e.staysActive()
			}
			e.complete(tc.last)
			e.awaitCompleted()
		})
	}
}

func TestRow7_3_26_ActiveJobsGoAndFinishedOnesStay(t *testing.T) {
	for name, end := range map[string]func(e *env){
		"after success": func(e *env) {
			e.complete(jobB1)
			e.awaitCompleted()
		},
		"after failure": func(e *env) {
			e.fail(jobB1)
			e.awaitFailed("FailedJobs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(successPolicy(jobsetv1alpha2.OperatorAny)))
			e.awaitJobs(running, allJobs...)
			e.ready(jobA, jobB0, jobB2)
			end(e)
			e.collectWhenDeleted(jobA, jobB0, jobB2)
			e.keepsJobs(live, jobB1)
		})
	}
}
