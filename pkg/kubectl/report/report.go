// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report is `kubectl jobset report`: what the runs of the archive have used, and what failed, summed up by namespace, user, queue,
// cause or node. Runs are added up page by page; only the sums are kept.
package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
)

const long = `Sum up the runs of the archive by namespace, user, queue or cause: how many there were and how many failed, how often they
were restarted, and for how long they were ready, with the accelerators and processors that they requested in this time.

HOURS LOST is, for a run that reported checkpoints, the time for which it was ready without progress that a checkpoint has kept; for
another run that failed, all the time for which it was ready; otherwise 0. GOODPUT is the share of the ready time that was good, of the
runs that reported checkpoints. A run that a SequentialJob created belongs to the run of the SequentialJob: its hours count, and it does
not count as a run.

--by=node counts on which nodes runs failed first, and says which nodes are likely to be at fault: those with more failures of the node
itself than chance explains. Failures of programs are counted apart, and accuse no node.`

const example = `  # The namespaces, in the last 30 days
  kubectl jobset report -A

  # Who has used how many hours of accelerators in the last week?
  kubectl jobset report -A --by=user --since=7d

  # Which nodes are at fault?
  kubectl jobset report -A --by=node

  # For a spreadsheet
  kubectl jobset report -A --by=queue -o csv

  # Hours lost in the namespace, for a script
  kubectl jobset report -o json | jq .total.lostHours`

// The values of --by.
const (
	byNamespace = "namespace"
	byUser      = "user"
	byQueue     = "queue"
	byNode      = "node"
	byCause     = "cause"
)

var groupings = []string{byNamespace, byUser, byQueue, byNode, byCause}

// formatCSV is the format of the command's own.
const formatCSV = "csv"

// options are the flags of the command.
type options struct {
	allNamespaces bool
	by, since     string
	output        cli.Output
	query         record.Query
}

// NewCommand returns `kubectl jobset report`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "report",
		Short:             "Sum up the runs of the archive: use, failures and hours lost, and nodes that are at fault",
		Long:              long,
		Example:           example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			if err := o.validate(args, now); err != nil {
				return err
			}
			return o.run(cmd.Context(), f, now)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Sum up the runs of all namespaces.")
	flags.StringVar(&o.by, "by", byNamespace, "What has a line. One of: ("+strings.Join(groupings, ", ")+").")
	flags.StringVar(&o.since, "since", "30d", "Only runs that ended in this time, like 30d, 2w or 12h.")
	o.output.AddFlags(cmd, formatCSV)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(groupings, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	return cmd
}

func (o *options) validate(args []string, now time.Time) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: report takes no arguments", args[0])
	}
	if !slices.Contains(groupings, o.by) {
		return fmt.Errorf("--by: must be one of %s, not %q", strings.Join(groupings, ", "), o.by)
	}
	since, err := record.Duration(o.since)
	if err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	o.query = record.Query{Since: now.Add(-since).Truncate(time.Second)}
	return o.output.Validate()
}

// Heading is what every report begins with in -o json.
type Heading struct {
	// By is what has a row.
	By string `json:"by"`
	// Namespace is the namespace of the runs; absent for all.
	Namespace string `json:"namespace,omitempty"`
	// Since and Until are the times between which the runs ended.
	Since metav1.Time `json:"since"`
	Until metav1.Time `json:"until"`
}

func (o *options) run(ctx context.Context, f *cli.Factory, now time.Time) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	if o.query.Namespace = clients.Namespace; o.allNamespaces {
		o.query.Namespace = metav1.NamespaceAll
	}
	heading := Heading{By: o.by, Namespace: o.query.Namespace, Since: metav1.NewTime(o.query.Since.UTC()), Until: metav1.NewTime(now.UTC())}
	var s summary = newUse(o.by)
	if o.by == byNode {
		s = newNodes()
	}
	read := 0
	if _, err := o.query.Pages(ctx, clients, 0, func(runs []archivev1alpha1.Run) error {
		read += len(runs)
		for i := range runs {
			if err := s.add(&runs[i]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	switch {
	case o.output.Is(formatCSV):
		return s.csv(f.Out)
	case !o.output.ForHumans():
		return o.output.PrintReport(f.Out, "RunReport", s.report(heading))
	case read == 0:
		fmt.Fprintln(f.ErrOut, o.none())
		return nil
	}
	return s.print(f)
}

// none is printed in place of an empty report.
func (o *options) none() string {
	text := "No runs found that ended in the last " + cli.Clean(o.since)
	if o.allNamespaces {
		return text + "."
	}
	return text + " in namespace " + o.query.Namespace + "."
}
