// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// maxFurther bounds the findings after the first that text shows; -o json has all of them.
	maxFurther = 5
	// maxShown bounds the evidence that text shows.
	maxShown = 6
)

// render writes the report for humans: the first finding with all that belongs to it, the others in a line each.
func render(w io.Writer, r *Report, term cli.Terminal, now time.Time) error {
	var b strings.Builder
	first := r.Findings[0]
	color := cli.Bad
	if first.Cause.Normal() {
		color = cli.Good
	} else if r.State == stateSuspended || r.State == stateStarting || r.State == stateRestarting {
		color = cli.Busy
	}
	fmt.Fprintf(&b, "%s  %s\n\n", term.Paint(cli.Bold, fmt.Sprintf("jobset %s/%s", r.Namespace, r.Name)), term.Paint(color, r.State))
	b.WriteString(term.Paint(color, string(first.Cause)) + "\n")
	for _, line := range wrapped(first.Summary, term.Width, "  ") {
		b.WriteString(line + "\n")
	}
	for i, fact := range first.Evidence {
		if i == maxShown {
			b.WriteString(term.Paint(cli.Quiet, fmt.Sprintf("  - and %d more; see -o json", len(first.Evidence)-i)) + "\n")
			break
		}
		b.WriteString(term.Paint(cli.Quiet, term.Cut("  - "+factText(fact, now))) + "\n")
	}
	for i, command := range first.Commands {
		begin := "        "
		if i == 0 {
			begin = "  next: "
		}
		b.WriteString(begin + command + "\n")
	}
	if further := r.Findings[1:]; len(further) > 0 {
		b.WriteString("\nalso\n")
		for i, f := range further {
			if i == maxFurther {
				fmt.Fprintf(&b, "  and %d more; see -o json\n", len(further)-i)
				break
			}
			b.WriteString(term.Cut(fmt.Sprintf("  %s: %s", f.Cause, f.Summary)) + "\n")
		}
	}
	if len(r.NotLookedAt) > 0 {
		var gaps []string
		for _, gap := range r.NotLookedAt {
			gaps = append(gaps, fmt.Sprintf("%s (%s)", gap.Source, gap.Reason))
		}
		b.WriteString("\n" + term.Paint(cli.Quiet, term.Cut("not looked at: "+strings.Join(gaps, ", "))) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// wrapped breaks a sentence into lines of the width of the terminal.
func wrapped(text string, width int, indent string) []string {
	if width <= 0 {
		return []string{indent + text}
	}
	var lines []string
	line := indent
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width && strings.TrimSpace(line) != "" {
			lines, line = append(lines, line), indent
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
