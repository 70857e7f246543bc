// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// maxFurther bounds the findings after the first that text shows; -o json has all of them.
	maxFurther = 5
	// maxShown bounds the evidence that text shows.
	maxShown = 6
)

// render writes the report for humans: the first finding with all that belongs to it, and the sentences of the others.
func render(w io.Writer, kind cli.Kind, r *Report, term cli.Terminal, now time.Time) error {
	color := colorOf(r)
	state := term.Paint(color, r.Words())
	if r.Progress != nil {
		state += ", step " + r.StepOf()
		if r.StepName != "" {
			state += " " + r.StepName
		}
	}
	if r.Jobs != nil && r.Attempt > 0 {
		state += fmt.Sprintf(", %s Jobs ready, attempt %d", r.Jobs.ReadyOf(), r.Attempt)
	}
	if r.RoleCounts != nil {
		state += fmt.Sprintf(", %s roles ready", r.RoleCounts.ReadyOf())
	}
	if r.ReplicaCounts != nil {
		state += fmt.Sprintf(", %s groups ready", r.ReplicaCounts.ReadyOf())
	}
	head := term.Paint(cli.Bold, fmt.Sprintf("%s %s/%s", kind.Names[0], r.Namespace, r.Name)) + "  "
	lines := append(term.Wrap(state, head, "  "), "")
	lines = append(lines, decisive(r.Findings[0], color, term, now)...)
	lines = append(lines, others(r.Findings[1:], term)...)
	for _, note := range r.Notes {
		lines = append(append(lines, ""), painted(term, cli.Quiet, term.Wrap("note: "+note, "", "  "))...)
	}
	if len(r.NotLookedAt) > 0 {
		var gaps []string
		for _, gap := range r.NotLookedAt {
			gaps = append(gaps, fmt.Sprintf("%s (%s)", gap.Source, gap.Reason))
		}
		lines = append(append(lines, ""), painted(term, cli.Quiet, term.Wrap("not looked at: "+strings.Join(gaps, ", "), "", "  "))...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func painted(term cli.Terminal, color cli.Color, lines []string) []string {
	for i := range lines {
		lines[i] = term.Paint(color, lines[i])
	}
	return lines
}

func colorOf(r *Report) cli.Color {
	switch {
	case r.Findings[0].Cause.Normal():
		return cli.Good
	case slices.Contains([]string{helper.PhaseSuspended, helper.PhasePending, helper.PhaseStarting, helper.PhaseRestarting,
		string(batchv1alpha1.PhaseWaiting), lwshelper.PhaseProgressing, lwshelper.PhaseUpdating, lwshelper.PhasePaused}, r.State):
		return cli.Busy
	}
	return cli.Bad
}

// decisive is the first finding. Sentences are wrapped; commands are left whole, to be copied.
func decisive(f Finding, color cli.Color, term cli.Terminal, now time.Time) []string {
	lines := append([]string{term.Paint(color, string(f.Cause))}, term.Wrap(f.Summary, "  ", "  ")...)
	for i, fact := range f.Evidence {
		if i == maxShown {
			lines = append(lines, term.Paint(cli.Quiet, fmt.Sprintf("  - and %d more; see -o json", len(f.Evidence)-i)))
			break
		}
		lines = append(lines, painted(term, cli.Quiet, term.Wrap(factText(fact, now), "  - ", "    "))...)
	}
	for i, command := range f.Commands {
		begin := "        "
		if i == 0 {
			begin = "  next: "
		}
		lines = append(lines, begin+command)
	}
	return lines
}

func others(findings []Finding, term cli.Terminal) []string {
	if len(findings) == 0 {
		return nil
	}
	lines := []string{"", "also"}
	for i, f := range findings {
		if i == maxFurther {
			return append(lines, fmt.Sprintf("  and %d more; see -o json", len(findings)-i))
		}
		lines = append(lines, term.Wrap(fmt.Sprintf("%s: %s", f.Cause, f.Summary), "  ", "    ")...)
	}
	return lines
}

func factText(f Fact, now time.Time) string {
	out := f.Object + " " + f.Text
	var notes []string
	if f.Time != nil {
		notes = append(notes, ago(now, f.Time.Time))
	}
	if f.Count > 1 {
		notes = append(notes, fmt.Sprintf("%d times", f.Count))
	}
	if len(notes) > 0 {
		out = fmt.Sprintf("%s %s (%s)", f.Object, f.Text, strings.Join(notes, ", "))
	}
	return out
}
