// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timeline is `kubectl jobset timeline`: the attempts of a set, and what it did in each, the steps of a
// sequence, the groups and revisions of a LeaderWorkerSet, or the groups of the roles of a DisaggregatedSet, drawn over time. Build makes
// data of a set; the chart for terminals, the page and the formats for scripts are made from that alone.
package timeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

// formatHTML is the format of the page.
const formatHTML = "html"

type options struct {
	factory *cli.Factory
	output  cli.Output
	file    string
	jobs    bool
	utc     bool
}

// NewCommand returns `kubectl jobset timeline`.
func NewCommand(f *cli.Factory, kinds []cli.For[Reader]) *cobra.Command {
	o := &options{factory: f}
	cmd := &cobra.Command{
		Use:   "timeline NAME",
		Short: "Draw the attempts of a JobSet, the steps of a SequentialJob, or the groups of a LeaderWorkerSet or DisaggregatedSet over time",
		Long: `Draws the attempts of a JobSet over time, and what it did in each: creating its Jobs, starting until all of
them were ready, running. Between attempts it may have been suspended or queued. A line for each attempt says what
began it, how long the set took to be ready (for a restart: to recover), how it ended, and what failed first.
Of a set that Kueue runs in another cluster, the time there is drawn; the attempts are in that cluster.

Of a SequentialJob (sqj/NAME), each step has a bar, and a line with its attempts, its state and what failed first.

Of a LeaderWorkerSet (lws/NAME), each revision that is kept and each group has a bar. That of a group is the run of its present
pods, with a mark where the group failed last. Of more than 30 groups, those that are not well have bars of their own.

Of a DisaggregatedSet (dset/NAME), the groups of each of its LeaderWorkerSets have bars.

Of a run of the archive (run/NAME), the attempts or steps are drawn that the record has; without them, one bar for the whole run.

-o html writes one page that needs no network: open it in a browser, or attach it to a report.`,
		Example: `  # The attempts of the set "train"
  kubectl jobset timeline train

  # The steps of the sequence "etl"
  kubectl jobset timeline sqj/etl

  # The groups of the LeaderWorkerSet "vllm"
  kubectl jobset timeline lws/vllm

  # The groups of all roles of the DisaggregatedSet "llm"
  kubectl jobset timeline dset/llm

  # The attempts of a run of the archive
  kubectl jobset timeline run/train-0a1b2c3d4e5f

  # Also the Jobs that exist
  kubectl jobset timeline train --jobs

  # A page to look at in a browser
  kubectl jobset timeline train -o html --file train.html

  # How long each phase took, for a script
  kubectl jobset timeline train -o json | jq '.phases[] | {kind, attempt, seconds}'`,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE:              cli.ReadObject(f, kinds, func(*cobra.Command) error { return o.validate() }, o.run),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.output.AddFlags(cmd, formatHTML)
	cmd.Flags().StringVar(&o.file, "file", "", "Write the page to this file. Requires -o html.")
	cmd.Flags().BoolVar(&o.jobs, "jobs", false, "Also draw the Jobs that exist. More than 30 Jobs are drawn by replicatedJob.")
	cmd.Flags().BoolVar(&o.utc, "utc", false, "Show times in UTC instead of the local time zone.")
}

func (o *options) validate() error {
	if o.file != "" && !o.output.Is(formatHTML) {
		return errors.New("--file: needs -o html; redirect the output to keep another format")
	}
	return o.output.Validate()
}

func (o *options) run(ctx context.Context, kind cli.For[Reader], name string) error {
	clients, err := o.factory.Clients()
	if err != nil {
		return err
	}
	t, err := kind.Do(ctx, clients, name, o.jobs)
	if err != nil {
		return err
	}
	zone := time.Local
	if o.utc {
		zone = time.UTC
	}
	switch {
	case o.output.ForHumans():
		s := screen{Terminal: o.factory.Terminal(), zone: zone}
		_, err = io.WriteString(o.factory.Out, text(t, s))
		return err
	case o.output.Is(formatHTML):
		return o.page(t, zone)
	}
	return o.output.PrintReport(o.factory.Out, kind.Title+"Timeline", t)
}

// Reader makes the timeline of an object of a kind, with its Jobs on request.
type Reader func(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error)

// page writes the page to the file or to the output.
func (o *options) page(t View, zone *time.Location) error {
	if o.file == "" {
		return Page(o.factory.Out, t, zone)
	}
	var content bytes.Buffer
	if err := Page(&content, t, zone); err != nil {
		return err
	}
	if err := os.WriteFile(o.file, content.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	return nil
}
