// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strconv"
	"strings"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// table writes a line for each attempt. What failed, or who ended it, follows in a line of its own.
func table(b *strings.Builder, t *Timeline, s screen) {
	head := []string{"#", "TRIGGER", "READY IN", "LASTED", "OUTCOME", "REASON"}
	for i := range head {
		head[i] = s.Paint(cli.Bold, head[i])
	}
	lines := [][]string{head}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		lines = append(lines, []string{
			// A long name of a user or a rule must not push out what stands behind it.
			strconv.Itoa(int(a.Number)), s.cut(triggerOf(a), s.Width/3), readyIn(a), cli.Seconds(a.Seconds),
			s.Paint(outcomeColor(a), outcomeOf(a)), cli.Clean(a.Reason),
		})
		lines = append(lines, details(a, s)...)
	}
	for _, aligned := range cli.Align(lines) {
		line(b, s, aligned)
	}
}

// details says what there is to say about the nodes of an attempt, and about its end.
func details(a *Attempt, s screen) [][]string {
	var out [][]string
	if avoided := avoidedOf(a); avoided != "" {
		out = append(out, []string{s.Paint(cli.Quiet, "   kept off: "+avoided)})
	}
	if a.FirstCause != nil {
		out = append(out, []string{s.Paint(cli.Bad, "   first cause: "+causeOf(a.FirstCause))})
	}
	if end := endOf(a); end != "" && (a.FirstCause == nil || a.EndUser != "") {
		what := "   ended: "
		if a.EndUser != "" {
			what = "   ended by "
		}
		out = append(out, []string{s.Paint(cli.Quiet, what+end)})
	}
	return out
}

func outcomeColor(a *Attempt) cli.Color {
	switch a.Outcome {
	case jobsetv1alpha2.OutcomeCompleted, "":
		return cli.Good
	case jobsetv1alpha2.OutcomeFailed, jobsetv1alpha2.OutcomeCancelled:
		return cli.Bad
	case jobsetv1alpha2.OutcomeSuspended:
		return cli.Quiet
	}
	return cli.Busy
}
