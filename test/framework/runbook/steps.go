// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package runbook

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Step is a fenced block of commands of a page, with the output that the page shows for it.
type Step struct {
	// Line is the number of the first line of the commands, from 1.
	Line int
	// Commands are the lines of a block ```bash.
	Commands string
	// Output is the block ```text that comes before the next commands; empty if there is none, and then the commands print nothing.
	Output string

	// first and last are the indices of the lines of the output; both are 0 without output.
	first, last int
}

// Steps returns the commands of the page in their order.
func Steps(t testing.TB, path string) (steps []Step) {
	t.Helper()
	lines := read(t, path)
	for i := 0; i < len(lines); i++ {
		language, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			continue
		}
		length := slices.Index(lines[i+1:], "```")
		if length < 0 {
			t.Fatalf("%s:%d: the block has no end", path, i+1)
		}
		first, last := i+1, i+1+length
		text := strings.Join(lines[first:last], "\n")
		switch language {
		case "bash":
			steps = append(steps, Step{Line: first + 1, Commands: text})
		case "text":
			if len(steps) == 0 || steps[len(steps)-1].Output != "" {
				t.Fatalf("%s:%d: the output belongs to no commands", path, i+1)
			}
			step := &steps[len(steps)-1]
			step.Output, step.first, step.last = text, first, last
		default:
			t.Fatalf("%s:%d: the language of a block must be bash or text", path, i+1)
		}
		i = last
	}
	if len(steps) == 0 {
		t.Fatalf("%s has no commands", path)
	}
	return steps
}

// Lines returns the indented lines of the page without the indentation, in their order: all of them, or those below the heading.
func Lines(t testing.TB, path, heading string) (found []string) {
	t.Helper()
	inside := heading == ""
	for _, text := range read(t, path) {
		if heading != "" && strings.HasPrefix(text, "## ") {
			inside = text == "## "+heading
		}
		if command, indented := strings.CutPrefix(text, "    "); indented && inside {
			found = append(found, command)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no indented lines below %q", path, heading)
	}
	return found
}

// Compare compares the output of a step with the page, and returns the difference, or an empty string. What differs from run to run is
// replaced in both by a placeholder (varying), columns may have any width, and the line "..." of the page stands for any lines.
func (s Step) Compare(got string) string {
	want := normalize(s.Output)
	var expression strings.Builder
	for _, text := range want {
		if text == "..." {
			expression.WriteString(`(?:.*\n)*`)
			continue
		}
		expression.WriteString(regexp.QuoteMeta(text) + `\n`)
	}
	lines := normalize(got)
	if regexp.MustCompile(`\A` + expression.String() + `\z`).MatchString(strings.Join(append(lines, ""), "\n")) {
		return ""
	}
	return fmt.Sprintf("page:\n  %s\nprinted:\n  %s\nas it is:\n%s", strings.Join(want, "\n  "), strings.Join(lines, "\n  "), got)
}

// varying is what differs from run to run, with its placeholder. docs/tutorial.md lists the same for its readers.
var varying = []struct {
	expression  *regexp.Regexp
	placeholder string
}{
	// Dates and times of day.
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(?::\d\d)?\b`), "TIME"},
	// Ages and other durations, and shares of them.
	{regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+\b`), "AGE"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)?%`), "SHARE"},
	// Nodes.
	{regexp.MustCompile(`\bnode-\d+\b`), "NODE"},
	// The letters that Kubernetes appends to the names of pods, and the keys of revisions.
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-POD"},
	{regexp.MustCompile(`\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "KEY"},
	// The bars of a timeline.
	{regexp.MustCompile(`[░▒█▓╌]+`), "BAR"},
}

// axis is a line of a timeline with dates, times, ticks, the legend, or the time between attempts: a longer run has more and others, and
// a shorter one may have none.
var axis = regexp.MustCompile(`^ +(?:[-\d:┬─ ]+(?:UTC)?|[░▒█▓╌×↻‖▶✓✗] [a-z].*)$|^stopped +×+$|^suspended +╌+$`)

// normalize returns the lines that are compared.
func normalize(text string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n "), "\n") {
		if axis.MatchString(line) {
			continue
		}
		for _, v := range varying {
			line = v.expression.ReplaceAllString(line, v.placeholder)
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// Update writes what steps have printed into the page in place of the outputs that it shows. Steps without output in the page are left
// alone.
func Update(t testing.TB, path string, steps []Step, printed []string) {
	t.Helper()
	lines := read(t, path)
	for i, step := range slices.Backward(steps) {
		if step.first > 0 {
			lines = slices.Replace(lines, step.first, step.last, strings.Split(strings.TrimRight(printed[i], "\n"), "\n")...)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n")
}

// Comment returns the comment at the top of a manifest, without the license and the signs of the comment, and the commands in it: lines
// that are indented by three spaces.
func Comment(t testing.TB, path string) (text string, commands []string) {
	t.Helper()
	var comment []string
	for _, line := range read(t, path) {
		line, isComment := strings.CutPrefix(line, "#")
		if !isComment && line != "" {
			break
		}
		if strings.HasPrefix(line, " Copyright ") || strings.HasPrefix(line, " SPDX-License-Identifier: ") {
			continue
		}
		if command, indented := strings.CutPrefix(line, "   "); indented {
			commands = append(commands, command)
		}
		comment = append(comment, strings.TrimPrefix(line, " "))
	}
	return strings.TrimSpace(strings.Join(comment, "\n")), commands
}
