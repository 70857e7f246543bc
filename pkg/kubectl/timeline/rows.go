// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// row is a line of the chart.
type row struct {
	// label is short. The page adds the detail.
	label, detail string
	phases        []Phase
	// outcome is how the row ends, open while it is still running, or empty.
	outcome string
}

// outcomeOpen is the outcome of a row that is still running.
const outcomeOpen = "open"

// rows returns the lines of the chart from top to bottom: one for an attempt, one for each time between attempts, and
// those of the Jobs.
func rows(t *Timeline) []row {
	var out []row
	attempts := map[int32]*Attempt{}
	for i := range t.Attempts {
		attempts[t.Attempts[i].Number] = &t.Attempts[i]
	}
	for _, phase := range t.Phases {
		if n := len(out); phase.Attempt != 0 && n > 0 && out[n-1].phases[0].Attempt == phase.Attempt {
			out[n-1].phases = append(out[n-1].phases, phase)
			continue
		}
		r := row{label: string(phase.Kind), detail: cli.Seconds(phase.Seconds), phases: []Phase{phase}}
		if phase.Open {
			r.outcome = outcomeOpen
		}
		if a := attempts[phase.Attempt]; a != nil {
			r.label, r.detail = fmt.Sprintf("attempt %d", a.Number), fmt.Sprintf("%s, %s", triggerOf(a), cli.Seconds(a.Seconds))
			r.outcome = string(a.Outcome)
			if a.EndTime == nil {
				r.outcome = outcomeOpen
			} else {
				r.detail += ", " + strings.ToLower(r.outcome)
			}
		}
		out = append(out, r)
	}
	for _, lane := range t.Jobs {
		out = append(out, laneRow(lane))
	}
	return out
}

func laneRow(lane Lane) row {
	kind := Running
	if !lane.Open && strings.Contains(lane.State, "Failed") {
		kind = Failed
	}
	r := row{label: cli.Clean(lane.Name), phases: []Phase{{Kind: kind, Begin: lane.Begin, End: lane.End, Open: lane.Open}}}
	r.detail = fmt.Sprintf("%s, %s", cli.Seconds(lane.End.Sub(lane.Begin).Seconds()), strings.ToLower(lane.State))
	if lane.Count > 1 {
		r.label = fmt.Sprintf("%s (%d Jobs)", r.label, lane.Count)
	}
	switch {
	case lane.Open:
		r.outcome = outcomeOpen
	case lane.State == "Complete":
		r.outcome = string(jobsetv1alpha2.OutcomeCompleted)
	case kind == Failed:
		r.outcome = string(jobsetv1alpha2.OutcomeFailed)
	}
	return r
}

// triggerOf says what began an attempt, in few words.
func triggerOf(a *Attempt) string {
	text := cli.Clean(string(a.Trigger))
	if a.Rule != "" {
		text += " rule " + cli.Clean(a.Rule)
	}
	if a.User != "" {
		text += " by " + cli.Clean(a.User)
	}
	switch a.Scope {
	case jobsetv1alpha2.ScopeReplicatedJob:
		text += ", all of " + cli.Clean(a.ReplicatedJob)
	case jobsetv1alpha2.ScopeJob:
		text += fmt.Sprintf(", Job %s/%d", cli.Clean(a.ReplicatedJob), ptr.Deref(a.JobIndex, 0))
	}
	return text
}

// beganFor is what began an attempt, with the reason.
func beganFor(a *Attempt) string {
	if a.Reason == "" {
		return triggerOf(a)
	}
	return triggerOf(a) + ": " + cli.Clean(a.Reason)
}

// endedFor is why an attempt ended, in a few words; empty for one that has not ended or has completed. What a user says has a line of its
// own.
func (t *Timeline) endedFor(a *Attempt) string {
	last := len(t.Attempts) > 0 && a == &t.Attempts[len(t.Attempts)-1]
	switch {
	case a.Outcome == "", a.EndUser != "", a.Outcome == jobsetv1alpha2.OutcomeCompleted:
		return ""
	case last && a.Outcome == jobsetv1alpha2.OutcomeFailed && t.Reason != "":
		return cli.Clean(t.Reason)
	case a.FirstCause != nil && a.FirstCause.Reason != "":
		return cli.Clean(a.FirstCause.Reason)
	}
	return cli.Clean(a.EndReason)
}

// causeOf says what failed first, with the names and numbers that a person needs.
func causeOf(c *jobsetv1alpha2.FailureCause) string { return causeIn("Job", c) }

// replicaCauseOf says what failed first in a group of a LeaderWorkerSet, of which pods belong to a StatefulSet.
func replicaCauseOf(c *jobsetv1alpha2.FailureCause) string { return causeIn("StatefulSet", c) }

func causeIn(kind string, c *jobsetv1alpha2.FailureCause) string {
	text := kind + " " + cli.Clean(c.Job)
	if c.Pod != "" {
		text = "pod " + cli.Clean(c.Pod)
	}
	if c.Node != "" {
		text += " on node " + cli.Clean(c.Node)
	}
	var how []string
	if c.Container != "" {
		how = append(how, "container "+cli.Clean(c.Container))
	}
	if c.ExitCode != nil {
		how = append(how, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.Signal != nil {
		how = append(how, fmt.Sprintf("signal %d", *c.Signal))
	}
	if c.Reason != "" {
		how = append(how, cli.Clean(c.Reason))
	}
	if len(how) > 0 {
		text += ": " + strings.Join(how, ", ")
	}
	if c.Message != "" {
		text += ": " + cli.Clean(c.Message)
	}
	return text
}

// endOf says who ended an attempt, and why. What only repeats the first cause is left to that.
func endOf(a *Attempt) string {
	switch {
	case a.EndUser != "" && a.EndReason != "":
		return fmt.Sprintf("%s: %s", cli.Clean(a.EndUser), cli.Clean(a.EndReason))
	case a.EndUser != "":
		return cli.Clean(a.EndUser)
	}
	return cli.Clean(a.EndReason)
}

// state says in few words what became of the set.
func state(t *Timeline) string {
	life := cli.Seconds(t.LifeSeconds)
	n := len(t.Attempts)
	if n == 0 {
		return fmt.Sprintf("%s, age %s", t.Words(), life)
	}
	all := int(t.Attempts[n-1].Number)
	text := fmt.Sprintf("%s, %s in %s", t.Words(), cli.Count(all, "attempt"), life)
	if all > n {
		text += fmt.Sprintf(", the last %d are kept", n)
	}
	return text
}

// use says of how much use the set was. Empty for one that never ran.
func use(t *Timeline) string {
	if len(t.Attempts) == 0 {
		return ""
	}
	text := fmt.Sprintf("all Jobs ready %.0f%% of the time", 100*t.ReadyShare)
	var sum, worst float64
	count := 0
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Recovers && a.SecondsToReady != nil {
			sum, worst = sum+*a.SecondsToReady, max(worst, *a.SecondsToReady)
			count++
		}
	}
	switch {
	case count == 1:
		text += ", recovered in " + cli.Seconds(worst)
	case count > 1:
		text += fmt.Sprintf(", recovered in %s on average, %s at worst", cli.Seconds(sum/float64(count)), cli.Seconds(worst))
	}
	return text
}

func readyIn(a *Attempt) string {
	if a.SecondsToReady == nil {
		return "not reached"
	}
	return cli.Seconds(*a.SecondsToReady)
}

func outcomeOf(a *Attempt) string {
	switch {
	case a.Outcome != "":
		return cli.Clean(string(a.Outcome))
	case a.SecondsToReady == nil:
		return "starting"
	}
	return "running"
}
