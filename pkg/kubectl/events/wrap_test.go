// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// TestEventsOnTerminals has the whole message of each event at each width.
func TestEventsOnTerminals(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	all := []Event{
		{Time: ago(20 * time.Minute), FirstTime: ago(20 * time.Minute), Count: 1, Type: "Normal", Reason: "SuccessfulCreate", Object: "Job/train-workers-0", Message: "Created pod: train-workers-0-0-mz5x2"},
		{Time: ago(9 * time.Minute), FirstTime: ago(21 * time.Minute), Count: 3, Type: "Warning", Reason: "BackOff", Object: "Pod/train-workers-0-0-mz5x2", Message: "Back-off restarting failed container main"},
		{Time: ago(8 * time.Minute), FirstTime: ago(8 * time.Minute), Count: 1, Type: "Warning", Reason: "FirstFailure", Object: "JobSet/train", Message: "pod train-workers-0-0-mz5x2 on node-17: container main, exit code 137"},
	}
	for _, width := range []int{60, 80, 100} {
		terminal, printer := cli.Terminal{Width: width}, &cli.Rows{Columns: columns}
		var rows [][]string
		for i := range all {
			rows = append(rows, all[i].cells(terminal, now))
		}
		lines := append(printer.Lines(terminal, rows[:2]), printer.Lines(terminal, rows[2:])...)
		for _, line := range lines {
			if cli.Columns(line) > width {
				t.Errorf("wider than %d columns: %q", width, line)
			}
		}
		got := strings.Join(lines, "\n") + "\n"
		words := strings.Join(strings.Fields(got), " ")
		if !strings.Contains(words, "137") || strings.Count(words, "restarting") != 1 {
			t.Errorf("at %d columns something is cut:\n%s", width, got)
		}
		golden.Compare(t, fmt.Sprintf("events-%d.txt", width), got)
	}
}
