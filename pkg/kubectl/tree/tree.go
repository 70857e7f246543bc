// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree is `kubectl jobset tree`: a JobSet with its replicatedJobs, Jobs and pods. It makes three list calls, however
// many pods there are; what is shown of many is decided by pure functions.
package tree

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

const long = `Show a JobSet with its replicatedJobs, Jobs and pods, and the state of each.

Up to 40 Jobs and pods are all shown. Of more, only those with problems are shown, the worst first, and the others are
counted by state. Jobs that still have to be created are shown as Missing, with what they wait for; Jobs of an earlier
attempt that are still there as Terminating or Outdated.

READY counts Jobs for the set and for replicatedJobs, pods for Jobs, and containers for pods. RESTARTS counts restarts
of the whole set, of single Jobs, and of containers.`

const example = `  # Show the set train, and what belongs to it
  kubectl jobset tree train

  # Show every pod, however many there are
  kubectl jobset tree train --all

  # Names of the pods that are not ready
  kubectl jobset tree train -o json | jq -r '.replicatedJobs[].jobs[].pods[]? | select(.ready | not) | .name'`

// View is what the command shows of an object; as data, it is the object itself.
type View interface {
	// Lines returns the lines for humans. Few lines are shown for many children, unless all are asked for.
	Lines(terminal cli.Terminal, now time.Time, all bool) []string
}

// Loader reads an object of a kind and what belongs to it.
type Loader func(ctx context.Context, c *cli.Clients, name string) (View, error)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (View, error) {
	set, err := snapshot.Load(ctx, c, name, true)
	if err != nil {
		return nil, err
	}
	return New(set), nil
}

// options are the flags of the command.
type options struct {
	all    bool
	output cli.Output
}

// NewCommand returns `kubectl jobset tree`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "tree NAME",
		Short:             "Show a JobSet with its Jobs and pods",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := cli.Find(kinds, args)
			if err != nil {
				return err
			}
			if err := o.output.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), f, kind, name)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "Show every Job and pod, however many there are.")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, f *cli.Factory, kind cli.For[Loader], name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	now := time.Now()
	tree, err := kind.Do(ctx, clients, name)
	if err != nil {
		return err
	}
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, kind.Title+"Tree", tree)
	}
	terminal := f.Terminal()
	return terminal.Lines(f.Out, tree.Lines(terminal, now, o.all)...)
}
