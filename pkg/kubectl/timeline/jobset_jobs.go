// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// lanesShown is how many Jobs have a lane of their own. More than these are shown by replicatedJob.
const lanesShown = 30

// Lane is the run of a Job, or of all Jobs of a replicatedJob when there are too many.
type Lane struct {
	// Name is the name of the Job, or of the replicatedJob when Count is more than one.
	Name string `json:"name"`
	// ReplicatedJob is the one that the Job belongs to.
	ReplicatedJob string `json:"replicatedJob"`
	// Count is the number of Jobs.
	Count int `json:"count"`
	// State is Running, Complete, Failed or Suspended, or says how many are in which.
	State string `json:"state"`
	// Begin is when the first Job started.
	Begin time.Time `json:"begin"`
	// End is when the last Job ended, or the time of reading if one has not.
	End time.Time `json:"end"`
	// Open reports which of both End is.
	Open bool `json:"open,omitempty"`
}

// Lanes returns the runs of the Jobs that have started, in their order.
func Lanes(jobs []*batchv1.Job, attempts []Attempt, now time.Time) []Lane {
	var lanes []Lane
	for _, job := range jobs {
		if job.Status.StartTime == nil {
			continue
		}
		lane := Lane{Name: job.Name, ReplicatedJob: snapshot.ReplicatedJob(job), Count: 1, Begin: startOf(job, attempts), State: "Running",
			Open: true}
		lane.End = later(now.UTC(), lane.Begin)
		for _, c := range job.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				lane.End, lane.Open, lane.State = later(c.LastTransitionTime.UTC(), lane.Begin), false, string(c.Type)
			}
		}
		lanes = append(lanes, lane)
	}
	if len(lanes) <= lanesShown {
		return lanes
	}
	return grouped(lanes)
}

// startOf returns when a Job started. Jobs have times in seconds and attempts in microseconds: a Job that seems to start in the second
// before an attempt began started with it.
func startOf(job *batchv1.Job, attempts []Attempt) time.Time {
	start := job.Status.StartTime.UTC()
	for i := range attempts {
		if begun := attempts[i].RequestTime; begun != nil && begun.Time.After(start) && begun.Sub(start) < time.Second {
			return begun.UTC()
		}
	}
	return start
}

// grouped joins the lanes of each replicatedJob. Lanes of one follow each other.
func grouped(lanes []Lane) []Lane {
	var out []Lane
	states := map[string]int{}
	for i, lane := range lanes {
		if i == 0 || lane.ReplicatedJob != lanes[i-1].ReplicatedJob {
			clear(states)
			group := lane
			group.Name, group.Count = lane.ReplicatedJob, 0
			out = append(out, group)
		}
		group := &out[len(out)-1]
		group.Count++
		group.Begin, group.End, group.Open = sooner(group.Begin, lane.Begin), later(group.End, lane.End), group.Open || lane.Open
		states[lane.State]++
		group.State = stateOf(states)
	}
	return out
}

func stateOf(states map[string]int) string {
	if len(states) == 1 {
		for state := range states {
			return state
		}
	}
	text := ""
	for _, state := range []string{"Running", "Complete", "Failed"} {
		if states[state] > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", states[state], state)
		}
	}
	return text
}
