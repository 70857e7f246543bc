// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

var columns = []Column{{Title: "NAME"}, {Title: "STATE"}, {Title: "AGE", Drop: 3}, {Title: "NODE", Drop: 2}, {Title: "MESSAGE", Drop: 1, Least: 12}}

var rows = [][]string{
	{"jobset/train", "Starting", "3h12m", "", "attempt 3, 1 of 5 restarts used: RestartRequested by alice"},
	{"job/train-workers-0", "\x1b[31mFailed\x1b[0m", "120m", "node-0017.example", "BackoffLimitExceeded"},
	{"and 5 more Jobs, which are not shown here because there is no room for them"},
	{"pod/train-workers-with-a-long-name-0-0-x7k2p", "CrashLoopBackOff", "4s", "東京", "main ended with exit code 137"},
}

func TestTable(t *testing.T) {
	var out strings.Builder
	for _, width := range []int{0, 200, 120, 100, 80, 60, 40, 20} {
		fmt.Fprintf(&out, "%d columns\n", width)
		for _, line := range (Terminal{Width: width}).Table(columns, rows) {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "table.txt", out.String())
}

func TestTablesAreNeverWiderThanTheTerminal(t *testing.T) {
	for width := 1; width < 200; width++ {
		for _, ascii := range []bool{false, true} {
			for _, line := range (Terminal{Width: width, Colors: true, ASCII: ascii}).Table(columns, rows) {
				if got := Columns(line); got > width {
					t.Fatalf("at width %d: a line has %d columns: %s", width, got, line)
				}
				if ascii && strings.Contains(line, "…") {
					t.Fatalf("at width %d: not all of ASCII: %s", width, line)
				}
			}
		}
	}
}

func TestEmptyColumnsGoFirst(t *testing.T) {
	of := []Column{{Title: "NAME"}, {Title: "NODE"}, {Title: "AGE", Drop: 1}}
	got := Terminal{Width: 12}.Table(of, [][]string{{"train", "", "3h"}})
	if diff := cmp.Diff([]string{"NAME   AGE", "train  3h"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestTableThatWraps has columns of which nothing is cut, and branches beside their further lines.
func TestTableThatWraps(t *testing.T) {
	of := []Column{{Title: "NAME"}, {Title: "STATE"}, {Title: "AGE", Drop: 3}, {Title: "NODE", Drop: 1}, {Title: "MESSAGE", Drop: 2, Least: 12, Wrap: true, Label: "message: "}}
	branches := []string{"│  ", "│  │  ", "", "│     "}
	var out strings.Builder
	for _, width := range []int{0, 200, 100, 80, 60, 40, 20} {
		fmt.Fprintf(&out, "%d columns\n", width)
		for _, line := range (Terminal{Width: width}).Tree(of, rows, branches) {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "table-wrapped.txt", out.String())
	for width := 1; width < 200; width++ {
		for _, line := range (Terminal{Width: width, Colors: true}).Tree(of, rows, branches) {
			if got := Columns(line); got > width {
				t.Fatalf("at width %d: a line has %d columns: %s", width, got, line)
			}
		}
	}
}
