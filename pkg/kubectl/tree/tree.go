// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree is `kubectl jobset tree`: a JobSet with its replicatedJobs, Jobs and pods, a SequentialJob with its steps, or a
// LeaderWorkerSet with its groups, or a DisaggregatedSet with its LeaderWorkerSets. It makes at most three list calls, however many pods
// there are; what is shown of many is decided by pure functions.
package tree

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

const long = `Show a JobSet with its replicatedJobs, Jobs and pods, and the state of each.

Up to 40 Jobs and pods are all shown. Of more, only those with problems are shown, the worst first, and the others are
counted by state. Jobs that are still to be created are Missing, with what they wait for. Jobs that do not exist because
the set has finished or is being deleted are Removed. Jobs of an earlier attempt that still exist are Terminating or Outdated.

Of a SequentialJob (sqj/NAME), all steps are shown with their states; those that have been started have their Job or JobSet below them.

Of a LeaderWorkerSet (lws/NAME), the groups are shown with their leaders and workers, and the revision of each. READY counts
groups for the set and pods for groups; RESTARTS counts how often groups were recreated after failures.

Of a DisaggregatedSet (dset/NAME), the LeaderWorkerSets of its roles are shown, each with its groups. READY counts roles for the set.

Of a run of the archive (run/NAME), the parts that the record has are shown: replicatedJobs, steps or groups, and how many of each were
ready, succeeded or failed at the end.

With --watch, the tree is drawn again when it changes: on a terminal in place, elsewhere below the last one with the time.

READY counts Jobs for the set and for replicatedJobs, pods for Jobs, and containers for pods. RESTARTS counts restarts
of the whole set, of single Jobs, and of containers.`

const example = `  # Show the set train, and what belongs to it
  kubectl jobset tree train

  # Show the steps of the sequence etl
  kubectl jobset tree sqj/etl

  # Show the groups of the LeaderWorkerSet vllm
  kubectl jobset tree lws/vllm

  # Show the roles of the DisaggregatedSet llm
  kubectl jobset tree dset/llm

  # Show what became of the parts of a run
  kubectl jobset tree run/train-0a1b2c3d4e5f

  # Show every pod, however many there are
  kubectl jobset tree train --all

  # Watch the set start
  kubectl jobset tree train -w

  # Names of the pods that are not ready
  kubectl jobset tree train -o json | jq -r '.replicatedJobs[].jobs[].pods[]? | select(.ready | not) | .name'`

// View is what the command shows of an object; as data, it is the object itself.
type View interface {
	// Lines returns the lines for humans. Few lines are shown for many children, unless all are asked for.
	Lines(terminal cli.Terminal, now time.Time, all bool) []string
}

// Loader reads an object of a kind and what belongs to it.
type Loader func(ctx context.Context, c *cli.Clients, name string) (View, error)

// load reads an object with its pods, and derives its tree.
func load[S any, V View](ctx context.Context, c *cli.Clients, name string, load snapshot.Loader[S], treeOf func(S) V) (View, error) {
	return snapshot.Read(ctx, c, name, load, func(object S) View { return treeOf(object) })
}

// options are the flags of the command.
type options struct {
	all, watch bool
	output     cli.Output
}

// NewCommand returns `kubectl jobset tree`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "tree NAME",
		Short:             "Show a JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet with its children and pods",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: cli.ReadObject(f, kinds, func(*cobra.Command) error { return o.validate() },
			func(ctx context.Context, kind cli.For[Loader], name string) error { return o.run(ctx, f, kind, name) }),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "Show every Job and pod, however many there are.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Draw the tree again when it changes, until the set is deleted or you end the "+
		"command.")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) validate() error {
	if o.watch && !o.output.ForHumans() {
		return errors.New("--watch: draws text only; use `kubectl get jobsets --watch` for other formats")
	}
	return o.output.Validate()
}

func (o *options) run(ctx context.Context, f *cli.Factory, kind cli.For[Loader], name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	if o.watch && kind.Title == cli.Run.Title {
		return errors.New("--watch: must be absent for a run: it is a record, and does not change")
	}
	if o.watch {
		return f.Redraw(ctx, kind.Names[0]+"/"+name, o.drawer(clients, kind, name))
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

// drawer reads the tree and draws it. Ages alone make no other frame.
func (o *options) drawer(c *cli.Clients, kind cli.For[Loader], name string) func(context.Context, cli.Terminal) (cli.Frame, error) {
	begin := time.Now()
	return func(ctx context.Context, terminal cli.Terminal) (cli.Frame, error) {
		now := time.Now()
		tree, err := kind.Do(ctx, c, name)
		if err != nil {
			return cli.Frame{}, err
		}
		unaged := tree.Lines(cli.Terminal{}, begin, o.all)
		return cli.Frame{Lines: tree.Lines(terminal, now, o.all), Key: strings.Join(unaged, "\n")}, nil
	}
}
