// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
)

const page = "# Page\n\n```bash\nx=1\n```\n\nText.\n\n```bash\necho \"x is $x\"\n```\n\nIt prints:\n\n```text\nx is 1\n```\n"

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStepsRunInOneShell(t *testing.T) {
	path := write(t, page)
	steps := runbook.Steps(t, path)
	if len(steps) != 2 || steps[0].Line != 4 || steps[1].Line != 10 || steps[0].Output != "" || steps[1].Output != "x is 1" {
		t.Fatalf("steps: %+v", steps)
	}
	shell := runbook.NewShell(t, t.TempDir())
	var printed []string
	for _, step := range steps {
		got, code := shell.Run(t, time.Minute, step.Commands)
		if difference := step.Compare(got); difference != "" || code != 0 {
			t.Errorf("exit code %d, %s", code, difference)
		}
		printed = append(printed, strings.Replace(got, "x is 1", "x is\none", 1))
	}
	runbook.Update(t, path, steps, printed)
	got, err := os.ReadFile(path)
	if want := strings.Replace(page, "x is 1\n```", "x is\none\n```", 1); err != nil || string(got) != want {
		t.Errorf("the updated page (-want +got): %v\n%s", err, cmp.Diff(want, string(got)))
	}
}

func TestShellReportsFailures(t *testing.T) {
	shell := runbook.NewShell(t, t.TempDir())
	for commands, want := range map[string]int{
		"true\nbash -c 'exit 3'\ntrue": 3, "bash -c 'exit 4' | cat": 4, "echo ok": 0, "no-such-command": 127, "cat": 0,
	} {
		if printed, code := shell.Run(t, time.Minute, commands); code != want {
			t.Errorf("%q: exit code %d, want %d; it printed %q", commands, code, want, printed)
		}
	}
	if printed, _ := shell.Run(t, time.Minute, "printf out; echo err >&2"); printed != "outerr\n" {
		t.Errorf("printed %q", printed)
	}
}

func TestCompareKnowsWhatVaries(t *testing.T) {
	const tree = "NAME                   STATE    AGE   NODE\npod/train-0-0-tzt2h    Running  2s    node-016"
	const chart = "all Jobs ready 46% of the time, recovered in 1s\n          19:38:30       19:38:31\n          ┬──────┬───\n" +
		"attempt 1 ░░▒▒███↻\n          ░ creating  ▒ starting"
	for name, tc := range map[string]struct {
		page, printed string
		same          bool
	}{
		"ages, nodes, names of pods and widths": {tree, "NAME  STATE  AGE  NODE\npod/train-0-0-bc9w4 Running 1m12s node-3", true},
		"another state":                         {tree, strings.Replace(tree, "Running", "Pending", 1), false},
		"another name":                          {tree, strings.Replace(tree, "train-0-0", "train-0-1", 1), false},
		"a line more":                           {tree, tree + "\nmore", false},
		"a line less":                           {tree, strings.Split(tree, "\n")[0], false},
		"lines left out":                        {"one\n...\nfour", "one\ntwo\nthree\nfour", true},
		"lines left out, another end":           {"one\n...\nfour", "one\ntwo\nthree", false},
		"another chart": {chart, "all Jobs ready 5.5% of the time, recovered in 2m3s\n          09:38\n          ┬───\n" +
			"attempt 1 ▒▒██↻\n          ▒ starting  █ running", true},
		"times between attempts that are too short to draw": {chart + "\nsuspended      ╌╌\nstopped         ××", chart, true},
		"another end of a bar":                              {chart, strings.Replace(chart, "↻", "✗", 1), false},
		"another number":                                    {"1 of 3 restarts", "2 of 3 restarts", false},
		"nothing":                                           {"", "\n", true},
		"something":                                         {"", "error", false},
	} {
		if difference := (runbook.Step{Output: tc.page}).Compare(tc.printed); (difference == "") != tc.same {
			t.Errorf("%s: the same is %v, want %v: %s", name, difference == "", tc.same, difference)
		}
	}
}

func TestLinesOfASection(t *testing.T) {
	path := write(t, "# Page\n\n    one\n\n## A\n\n    two\n    three\n\n## B\n\n    four\n")
	for heading, want := range map[string][]string{"": {"one", "two", "three", "four"}, "A": {"two", "three"}, "B": {"four"}} {
		if diff := cmp.Diff(want, runbook.Lines(t, path, heading)); diff != "" {
			t.Errorf("section %q (-want +got):\n%s", heading, diff)
		}
	}
}

func TestCommentOfAManifest(t *testing.T) {
	path := write(t, "# Copyright A.\n# SPDX-License-Identifier: B\n\n"+
		"# Feature gate: X.\n#\n# Try it:\n#\n#   one \\\n#     more\n#   two\nkind: A # no\n#   three\n")
	text, commands := runbook.Comment(t, path)
	if want := "Feature gate: X.\n\nTry it:\n\n  one \\\n    more\n  two"; text != want {
		t.Errorf("comment %q, want %q", text, want)
	}
	if diff := cmp.Diff([]string{"one \\", "  more", "two"}, commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
