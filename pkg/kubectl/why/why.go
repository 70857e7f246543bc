// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is the command `kubectl jobset why`: it explains the state of a set.
//
// Reading is apart from the diagnosis. Load fills an Evidence: in a first round what every diagnosis needs (the set,
// its Jobs, its pods, warnings, the API service, the lease of the controller), in a second what the first round points
// at (nodes, claims, queues). Diagnose then applies rules to it, each of which knows the signs of some causes. Causes
// are ordered, so that of several that hold the one to deal with first comes first.
package why

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

const long = `Explain the state of a JobSet, of a SequentialJob (sqj/NAME), of a LeaderWorkerSet (lws/NAME) or of a
DisaggregatedSet (dset/NAME): why it does not run, why it failed, or that nothing is wrong. Of a run of the archive (run/NAME), explain
how it ended, from its record alone.

The output begins with the cause to deal with first, the evidence for it, and the commands to run next. Other findings follow.
It comes from the set, its Jobs and pods, warnings, nodes, quotas, volume claims, Services, queues and pod groups, the lease of
the controller and the API service of the group. What you have no permission to read is skipped, and listed at the end.

With -o json or yaml, among others: namespace, name, state, findings[] {cause, summary, evidence[] {object, text, time, count}, commands[]},
notes[], notLookedAt[] {source, reason}. The causes are listed in docs/why.md.`

const example = `  # Why does it not run?
  kubectl jobset why train

  # Why has the sequence failed, and what runs it again?
  kubectl jobset why sqj/etl

  # Why are groups of the LeaderWorkerSet not ready?
  kubectl jobset why lws/vllm

  # Why are roles of the DisaggregatedSet not ready, or why does its rollout stand still?
  kubectl jobset why dset/llm

  # Why did this run of the archive end?
  kubectl jobset why run/train-0a1b2c3d4e5f

  # The cause in one word, for a script
  kubectl jobset why train -o json | jq -r '.findings[0].cause'`

// Diagnoser reads an object of a kind and what explains its state, and reports the causes.
type Diagnoser func(ctx context.Context, c *cli.Clients, name string) (*Report, error)

// NewCommand returns `kubectl jobset why`.
func NewCommand(f *cli.Factory, kinds []cli.For[Diagnoser]) *cobra.Command {
	output := &cli.Output{}
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Explain the state of a JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet, and what to do", Long: long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: cli.ReadWhateverIsLeft(f, kinds, func(*cobra.Command) error { return output.Validate() },
			func(ctx context.Context, kind cli.For[Diagnoser], name string, none *cli.NoObjectError) error {
				return run(ctx, f, output, kind, name, none)
			}),
	}
	output.AddFlags(cmd)
	return cmd
}

func run(ctx context.Context, f *cli.Factory, output *cli.Output, kind cli.For[Diagnoser], name string, none *cli.NoObjectError) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	now := time.Now()
	report, err := kind.Do(ctx, clients, name)
	if err != nil {
		return err
	}
	report.sayNone(none)
	if output.ForHumans() {
		err = render(f.Out, kind.Kind, report, f.Terminal(), now)
	} else {
		err = output.PrintReport(f.Out, kind.Title+"Diagnosis", report)
	}
	if err == nil && (report.State == stateNotFound || report.State == stateUnknown) {
		err = cli.ErrSilent
	}
	return err
}
