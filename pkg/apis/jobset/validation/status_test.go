// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func condition(change func(*metav1.Condition)) func(*jobset.JobSetStatus) {
	return func(s *jobset.JobSetStatus) {
		c := metav1.Condition{
			Type: "Completed", Status: metav1.ConditionTrue, Reason: "AllJobsCompleted",
			LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		}
		change(&c)
		s.Conditions = append(s.Conditions, c)
	}
}

func jobStatus(statuses ...jobset.ReplicatedJobStatus) func(*jobset.JobSetStatus) {
	return func(s *jobset.JobSetStatus) { s.ReplicatedJobsStatus = statuses }
}

func TestStatus(t *testing.T) {
	many := make([]int32, 1025)
	cases := map[string]struct {
		change func(*jobset.JobSetStatus)
		want   []refusal
	}{
		"3.2 a condition passes, with an empty message": {change: condition(func(*metav1.Condition) {})},
		"own negative counts of restarts": {
			change: func(s *jobset.JobSetStatus) { s.Restarts, s.RestartsCountTowardsMax, s.AddedRestarts = -4, -1, -1 },
			want: []refusal{
				{"status.restarts", invalid, "must be 0 or more"},
				{"status.restartsCountTowardsMax", invalid, "must be 0 or more"},
				{"status.addedRestarts", invalid, "must be 0 or more"},
			},
		},
		"own negative counts of Jobs": {
			change: jobStatus(jobset.ReplicatedJobStatus{
				Name: "workers", Ready: -1, Succeeded: -1, Failed: -1, Active: -1, Suspended: -1,
				JobRestarts: []int32{0, -1}, JobRestartsCountTowardsMax: []int32{-1},
			}),
			want: []refusal{
				{"status.replicatedJobsStatus[0].ready", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].succeeded", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].failed", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].active", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].suspended", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].jobRestarts[1]", invalid, "must be 0 or more"},
				{"status.replicatedJobsStatus[0].jobRestartsCountTowardsMax[0]", invalid, "must be 0 or more"},
			},
		},
		"own a placement": {change: func(s *jobset.JobSetStatus) {
			s.Placement = &jobset.Placement{Restarts: 1, ReplicatedJobs: []jobset.ReplicatedJobPlacement{
				{Name: "workers", TopologyKey: "rack", Priority: -1, Jobs: []jobset.JobPlacement{{Domain: "a", Nodes: 2}, {Ready: true, Moves: &jobset.JobMoves{Left: make([]string, 8)}}}},
			}}
		}},
		"own a placement that is malformed": {
			change: func(s *jobset.JobSetStatus) {
				s.Placement = &jobset.Placement{Restarts: -1, ReplicatedJobs: []jobset.ReplicatedJobPlacement{
					{Name: "workers", Jobs: []jobset.JobPlacement{{}, {Nodes: -1, Restarts: -1, Moves: &jobset.JobMoves{Left: make([]string, 9)}}}}, {Name: "workers", TopologyKey: "rack"}, {TopologyKey: "rack"},
				}}
			},
			want: []refusal{
				{"status.placement.restarts", invalid, "must be 0 or more"},
				{"status.placement.replicatedJobs[0].topologyKey", required, "must be a label of nodes"},
				{"status.placement.replicatedJobs[0].jobs[1].nodes", invalid, "must be 0 or more"},
				{"status.placement.replicatedJobs[0].jobs[1].restarts", invalid, "must be 0 or more"},
				{"status.placement.replicatedJobs[0].jobs[1].moves.left", tooMany, "must have at most 8 items"},
				{"status.placement.replicatedJobs[1]", duplicate, unique},
				{"status.placement.replicatedJobs[2].name", required, "must be the name of the replicatedJob that is placed"},
			},
		},
		"3.2 a condition without a type": {
			change: condition(func(c *metav1.Condition) { c.Type = "" }),
			want:   only("status.conditions[0].type", required, "is required"),
		},
		"3.2 a condition type that is no qualified name": {
			change: condition(func(c *metav1.Condition) { c.Type = "not good" }),
			want: only("status.conditions[0].type", invalid,
				"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
		},
		"3.2 a condition without a status": {
			change: condition(func(c *metav1.Condition) { c.Status = "" }),
			want:   only("status.conditions[0].status", required, ""),
		},
		"3.2 an unknown status": {
			change: condition(func(c *metav1.Condition) { c.Status = "Maybe" }),
			want:   only("status.conditions[0].status", notSupported, `supported values: "False", "True", "Unknown"`),
		},
		"3.2 a negative observed generation": {
			change: condition(func(c *metav1.Condition) { c.ObservedGeneration = -1 }),
			want:   only("status.conditions[0].observedGeneration", invalid, "must be greater than or equal to zero"),
		},
		"3.2 no transition time": {
			change: condition(func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} }),
			want:   only("status.conditions[0].lastTransitionTime", required, ""),
		},
		"3.2 no reason": {
			change: condition(func(c *metav1.Condition) { c.Reason = "" }),
			want:   only("status.conditions[0].reason", required, ""),
		},
		"3.2 a reason with a blank": {
			change: condition(func(c *metav1.Condition) { c.Reason = "All done" }),
			want: only("status.conditions[0].reason", invalid,
				"a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"),
		},
		"3.2 a reason of 1025 characters": {
			change: condition(func(c *metav1.Condition) { c.Reason = strings.Repeat("a", 1025) }),
			want:   only("status.conditions[0].reason", tooLong, "may not be more than 1024 bytes"),
		},
		"3.2 a message of 32769 characters": {
			change: condition(func(c *metav1.Condition) { c.Message = strings.Repeat("a", 32769) }),
			want:   only("status.conditions[0].message", tooLong, "may not be more than 32768 bytes"),
		},
		"3.2 two conditions of one type": {
			change: func(s *jobset.JobSetStatus) {
				condition(func(*metav1.Condition) {})(s)
				condition(func(*metav1.Condition) {})(s)
			},
			want: only("status.conditions[1]", duplicate, ""),
		},
		"3.2 a replicatedJob status without a name": {
			change: jobStatus(jobset.ReplicatedJobStatus{}),
			want:   only("status.replicatedJobsStatus[0].name", required, "must be the name of the replicatedJob that is counted"),
		},
		"3.2 two statuses of one replicatedJob": {
			change: jobStatus(jobset.ReplicatedJobStatus{Name: "a"}, jobset.ReplicatedJobStatus{Name: "a"}),
			want:   only("status.replicatedJobsStatus[1]", duplicate, unique),
		},
		"3.2 restarts of 1025 single Jobs": {
			change: jobStatus(jobset.ReplicatedJobStatus{Name: "a", JobRestarts: many, JobRestartsCountTowardsMax: many}),
			want: []refusal{
				{"status.replicatedJobsStatus[0].jobRestarts", tooMany, "must have at most 1024 items"},
				{"status.replicatedJobsStatus[0].jobRestartsCountTowardsMax", tooMany, "must have at most 1024 items"},
			},
		},
		"3.2 restarts of 1024 single Jobs pass": {
			change: jobStatus(jobset.ReplicatedJobStatus{Name: "a", JobRestarts: many[1:], JobRestartsCountTowardsMax: many[1:]}),
		},
		"3.2 negative attempts": {
			change: func(s *jobset.JobSetStatus) {
				s.PreviousInPlaceRestartAttempt, s.CurrentInPlaceRestartAttempt = ptr.To[int32](-1), ptr.To[int32](-2)
				s.ExecutionAttempts = ptr.To[int32](-3)
			},
			want: []refusal{
				{"status.previousInPlaceRestartAttempt", invalid, "must be 0 or more"},
				{"status.currentInPlaceRestartAttempt", invalid, "must be 0 or more"},
				{"status.executionAttempts", invalid, "must be 0 or more"},
			},
		},
		"3.2 no attempts yet pass": {
			change: func(s *jobset.JobSetStatus) {
				s.PreviousInPlaceRestartAttempt, s.CurrentInPlaceRestartAttempt = ptr.To[int32](0), ptr.To[int32](0)
				s.ExecutionAttempts = ptr.To[int32](0)
			},
		},
		"3.2 any terminal state passes, as upstream": {change: func(s *jobset.JobSetStatus) { s.TerminalState = "Paused" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prev, next := train(), train()
			tc.change(&next.Status)
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetStatusUpdate(next, prev, gates.Gates{}))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
			again := next.DeepCopy()
			again.Status.Restarts++
			if errs := validation.ValidateJobSetStatusUpdate(again, next, gates.Gates{}); len(errs) > 0 {
				t.Errorf("a stored status is refused: %v", errs.ToAggregate())
			}
		})
	}
}
