// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor is `kubectl jobset doctor`: it checks the installation as a whole. A check is a function that returns one result; the
// list of checks is the only thing to change when one is added.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const long = `Check the installation of jobset-apiserver: whether the API is registered and available, whether kube-apiserver asks the
server about pods of LeaderWorkerSets, whether the server serves its store or refuses to, and what an administrator
should know about the store.

Each check has one line that begins with [ok], [warn] or [fail]. The exit code is 1 if a check fails. Most checks read
objects that not all users may read; the ClusterRole jobset-doctor grants what they need.`

const example = `  # Check everything
  kubectl jobset doctor

  # Why does the server refuse to serve?
  kubectl jobset doctor -o jsonpath='{.checks[?(@.name=="store")].message}'`

// Status is the outcome of a check.
type Status string

// Statuses.
const (
	// OK means that all is well.
	OK Status = "ok"
	// Warn means that an administrator should look at something, or that it could not be checked.
	Warn Status = "warn"
	// Fail means that something does not work.
	Fail Status = "fail"
)

// Result is what a check has found. Its JSON is an interface for scripts.
type Result struct {
	// Name is the name of the check.
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Message is a sentence, or the paragraph of the server.
	Message string `json:"message"`
}

// Report is what -o json prints.
type Report struct {
	// Status is the worst of the checks.
	Status Status   `json:"status"`
	Checks []Result `json:"checks"`
}

// check looks at one thing. It says everything with its result, also that it could not look.
type check struct {
	name string
	run  func(context.Context, *patient) (Status, string)
}

// checkTimeout bounds the reading for all checks together.
const checkTimeout = 20 * time.Second

// NewCommand returns `kubectl jobset doctor`.
func NewCommand(f *cli.Factory) *cobra.Command {
	output := &cli.Output{}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the installation: API, server and store", Long: long, Example: example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: doctor takes no arguments", args[0])
			}
			if err := output.Validate(); err != nil {
				return err
			}
			clients, err := f.Clients()
			if err != nil {
				return err
			}
			report := examine(cmd.Context(), clients, time.Now())
			if err := show(f, output, report); err != nil {
				return err
			}
			if report.Status == Fail {
				return cli.ErrSilent
			}
			return nil
		},
	}
	output.AddFlags(cmd)
	return cmd
}

// examine runs all checks at once and returns their results in the order of the list.
func examine(ctx context.Context, c *cli.Clients, now time.Time) *Report {
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	p := read(ctx, c, now)
	report := &Report{Status: OK, Checks: make([]Result, len(checks))}
	var group errgroup.Group
	for i, check := range checks {
		group.Go(func() error {
			status, message := check.run(ctx, p)
			report.Checks[i] = Result{Name: check.name, Status: status, Message: cli.Clean(message)}
			return nil
		})
	}
	_ = group.Wait()
	for _, result := range report.Checks {
		report.Status = worse(report.Status, result.Status)
	}
	return report
}

func worse(a, b Status) Status {
	if a == Fail || b == OK {
		return a
	}
	return b
}

func show(f *cli.Factory, output *cli.Output, report *Report) error {
	if !output.ForHumans() {
		return output.PrintReport(f.Out, "JobSetHealth", report)
	}
	return render(f.Out, f.Terminal(), report)
}

// render writes one line for each check. On a terminal, messages are wrapped under each other.
func render(w io.Writer, t cli.Terminal, report *Report) error {
	width := 0
	for _, result := range report.Checks {
		width = max(width, len(result.Name))
	}
	colors := map[Status]cli.Color{OK: cli.Good, Warn: cli.Busy, Fail: cli.Bad}
	var lines []string
	for _, result := range report.Checks {
		head := t.Paint(colors[result.Status], cli.Pad("["+string(result.Status)+"]", 7)) + cli.Pad(result.Name, width+2)
		lines = append(lines, t.Wrap(result.Message, head, strings.Repeat(" ", cli.Columns(head)))...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
