// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor is `kubectl jobset doctor`: it checks the installation as a whole, hop by hop: from the client through
// kube-apiserver and its aggregator to the Service, the pods, the server and its store, and back from the programs to
// kube-apiserver.
//
// First, everything that checks share is read at the same time. Then each check looks at one thing. A check whose hop
// lies behind a broken one is skipped, so that the first failure is the one to repair. A check is a
// function that returns one finding; the list of checks is the only thing to change when one is added.
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

const long = `Check the installation of jobset-apiserver hop by hop: whether kube-apiserver answers and knows the API, whether Service,
pods and certificate lead it to the server, whether the server reaches its store and may ask kube-apiserver what it has
to, whether a controller works, whether versions, feature gates and clocks fit together, and what an administrator
should know about the store.

Each check has one line that begins with [ok], [warn], [fail], or [skip] if it cannot be judged because of an earlier
failure. The first broken hop follows with the command that repairs it. The exit code is 1 if a check fails. Most checks
read objects that not all users may read; the ClusterRole and the Role jobset-doctor grant what they need.`

const example = `  # Check everything
  kubectl jobset doctor

  # The command that repairs the first broken hop
  kubectl jobset doctor -o jsonpath='{.checks[?(@.status=="fail")].fix}'

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
	// Skip means that it cannot be checked, because something that it depends on does not work or does not exist.
	Skip Status = "skip"
)

// Result is what a check has found. Its JSON is an interface for scripts.
type Result struct {
	// Name is the name of the check.
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Message is a sentence, or the paragraph of the server.
	Message string `json:"message"`
	// Fix is the command that repairs it; empty if there is nothing to repair, or no single command does.
	Fix string `json:"fix,omitempty"`
}

// Report is what -o json prints.
type Report struct {
	// Status is the worst of the checks.
	Status Status   `json:"status"`
	Checks []Result `json:"checks"`
	// FirstBroken is the name of the first check that fails; empty if none does.
	FirstBroken string `json:"firstBroken,omitempty"`
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
			report := examine(cmd.Context(), clients, getter(clients), time.Now())
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
func examine(ctx context.Context, c *cli.Clients, ask get, now time.Time) *Report {
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	p := read(ctx, c, ask, now)
	findings := make([]finding, len(checks))
	var group errgroup.Group
	for i, check := range checks {
		group.Go(func() error {
			ctx, stop := context.WithTimeout(ctx, readTimeout)
			defer stop()
			findings[i] = check.run(ctx, p)
			findings[i].message = cli.Clean(findings[i].message)
			findings[i].fix = cli.Clean(findings[i].fix)
			return nil
		})
	}
	_ = group.Wait()
	report := &Report{Status: OK}
	report.Checks, report.FirstBroken = resultsOf(findings)
	for _, result := range report.Checks {
		report.Status = worse(report.Status, result.Status)
	}
	return report
}

func worse(a, b Status) Status {
	if a == Fail || b == OK || b == Skip {
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
	colors := map[Status]cli.Color{OK: cli.Good, Warn: cli.Busy, Fail: cli.Bad, Skip: cli.Quiet}
	var lines []string
	for _, result := range report.Checks {
		head := t.Paint(colors[result.Status], cli.Pad("["+string(result.Status)+"]", 7)) + cli.Pad(result.Name, width+2)
		lines = append(lines, t.Wrap(result.Message, head, strings.Repeat(" ", cli.Columns(head)))...)
	}
	if report.FirstBroken != "" {
		lines = append(lines, "", t.Paint(cli.Bold, "First broken hop: ")+report.FirstBroken)
	}
	lines = append(lines, fixes(report)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// fixes are the commands that repair what was found, that of the first broken hop first.
func fixes(report *Report) (lines []string) {
	for _, result := range report.Checks {
		switch {
		case result.Fix == "" || result.Status == Skip:
		case result.Name == report.FirstBroken:
			lines = append([]string{"Fix:", "    " + result.Fix}, lines...)
		default:
			lines = append(lines, "Fix of "+result.Name+":", "    "+result.Fix)
		}
	}
	return lines
}
