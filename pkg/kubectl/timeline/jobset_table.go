// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strconv"
	"strings"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// attemptColumns are the columns of the table of attempts. TRIGGER has why an attempt began, and REASON why it ended. Nothing of them is
// cut.
var attemptColumns = []cli.Column{
	{Title: "#"}, {Title: "TRIGGER", Least: 14, Wrap: true}, {Title: "READY IN", Least: 8, Wrap: true, Drop: 1, Label: "ready in: "},
	{Title: "LASTED"}, {Title: "OUTCOME"},
	{Title: "REASON", Least: 24, Wrap: true, Drop: 2, Label: "reason: "},
}

// table writes a line for each attempt. What failed, or who ended it, follows in a line of its own.
func table(b *strings.Builder, t *Timeline, s screen) {
	var rows [][]string
	for i := range t.Attempts {
		a := &t.Attempts[i]
		rows = append(rows, []string{
			strconv.Itoa(int(a.Number)), beganFor(a), readyIn(a), cli.Seconds(a.Seconds), s.Paint(outcomeColor(a), outcomeOf(a)),
			t.endedFor(a),
		})
		rows = append(rows, details(a, s)...)
	}
	lines(b, s.Table(attemptColumns, rows))
}

// lines writes lines.
func lines(b *strings.Builder, all []string) {
	for _, one := range all {
		b.WriteString(one + "\n")
	}
}

// detail is a row about the row above it, like what failed first there.
func (s screen) detail(color cli.Color, text string) []string {
	return []string{"   " + s.Paint(color, text)}
}

// details says what there is to say about the nodes of an attempt, and about its end.
func details(a *Attempt, s screen) [][]string {
	var out [][]string
	if avoided := avoidedOf(a); avoided != "" {
		out = append(out, s.detail(cli.Quiet, "kept off: "+avoided))
	}
	if a.FirstCause != nil {
		out = append(out, s.detail(cli.Bad, "first cause: "+causeOf(a.FirstCause)))
	}
	if a.EndUser != "" {
		out = append(out, s.detail(cli.Quiet, "ended by "+endOf(a)))
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

// avoidedOf says which nodes the pods of an attempt keep off, or kept off; empty for none.
func avoidedOf(a *Attempt) string {
	if len(a.AvoidedNodes) == 0 {
		return ""
	}
	text := cli.Clean(helper.AvoidedInWords(a.AvoidedNodes))
	if a.ForgetTime != nil {
		text += "; forgotten, because there was no room elsewhere"
	}
	return text
}
