// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is the command `kubectl jobset why`: it says why a set is as it is.
//
// Reading is apart from judging. Load fills an Evidence: in a first round what every diagnosis needs (the set, its Jobs, its
// pods, warnings, the API service, the lease of the controller), in a second what the first round points at (nodes, claims,
// queues). Diagnose then applies rules to it, each of which knows the signs of some causes. Causes are ordered, so that of
// several that hold the one to deal with first comes first.
package why

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

const long = `Say why a JobSet is as it is: why it does not run, why it failed, or that all is well.

The answer begins with the cause to deal with first, what it was recognised by, and what to run next; other findings follow.
It comes from the set, its Jobs and pods, warnings, nodes, quotas, volume claims, Services, queues and pod groups, the lease of
the controller and the API service of the group. What may not be read is left out, and named at the end.

With -o json or yaml: namespace, name, state, findings[] {cause, summary, evidence[] {object, text, time, count}, commands[]},
notLookedAt[] {source, reason}. The causes are listed in docs/why.md.`

const example = `  # Why does it not run?
  kubectl jobset why train

  # The cause in one word, for a script
  kubectl jobset why train -o json | jq -r '.findings[0].cause'`

// NewCommand returns `kubectl jobset why`.
func NewCommand(f *cli.Factory) *cobra.Command {
	output := &cli.Output{}
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Say why a JobSet does not run, and what to do", Long: long, Example: example,
		ValidArgsFunction: complete.JobSets(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := cli.SetName(args)
			if err == nil {
				err = output.Validate()
			}
			if err != nil {
				return err
			}
			return run(cmd, f, output, name)
		},
	}
	output.AddFlags(cmd)
	return cmd
}

func run(cmd *cobra.Command, f *cli.Factory, output *cli.Output, name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	evidence, err := Load(cmd.Context(), clients, name)
	if err != nil {
		return fmt.Errorf("reading jobset %s: %w", name, err)
	}
	report := Diagnose(evidence)
	if output.ForHumans() {
		err = render(f.Out, report, cli.TerminalOf(f.Out), evidence.Now)
	} else {
		err = output.Print(f.Out, report)
	}
	if err == nil && report.State == stateNotFound {
		err = cli.ErrSilent
	}
	return err
}
