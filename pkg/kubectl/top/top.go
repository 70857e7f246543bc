// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top is `kubectl jobset top`: how much of a JobSet is ready, where it runs, what it requests there, its ready share and its goodput.
package top

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

const long = `Show how many pods of a JobSet are ready, what it requests on which nodes and in which topology domains, the
attempts so far, the ready share: the share of its life, from creation to end, in which all of its Jobs were ready; and, if
the job reports its checkpoints, the goodput: the share of its life whose work a checkpoint has kept.

Requests are those of pods that have not ended. For usage, see "kubectl top pods". Nodes with pods that are not ready come first.`

const example = `  # Show the set train
  kubectl jobset top train

  # By rack, as the label of the nodes says
  kubectl jobset top train --domain-label=example.com/rack

  # The ready share, for a script
  kubectl jobset top train -o json | jq .readyShare.share`

// options are the flags of the command.
type options struct {
	domainLabel string
	all         bool
	output      cli.Output
}

// Loader reads an object of a kind and the Jobs and pods that belong to it.
type Loader func(ctx context.Context, c *cli.Clients, name string) (*snapshot.Set, error)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (*snapshot.Set, error) {
	return snapshot.Load(ctx, c, name, true)
}

// NewCommand returns `kubectl jobset top`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "top NAME",
		Short:             "Show ready pods, requests by node and domain, attempts, ready share and goodput",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := cli.Find(kinds, args)
			if err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), f, kind, name)
		},
	}
	cmd.Flags().StringVar(&o.domainLabel, "domain-label", corev1.LabelTopologyZone, "Label of the nodes that names their topology domain.")
	cmd.Flags().BoolVar(&o.all, "all", false, "Show every node and domain, however many there are.")
	_ = cmd.RegisterFlagCompletionFunc("domain-label", cobra.FixedCompletions(
		[]cobra.Completion{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable}, cobra.ShellCompDirectiveNoFileComp))
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) validate() error {
	if problems := validation.IsQualifiedName(o.domainLabel); len(problems) > 0 {
		return fmt.Errorf("--domain-label: must be the key of a label, not %q: %s", o.domainLabel, problems[0])
	}
	return o.output.Validate()
}

func (o *options) run(ctx context.Context, f *cli.Factory, kind cli.For[Loader], name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	set, err := kind.Do(ctx, clients, name)
	if err != nil {
		return err
	}
	domains, err := snapshot.Domains(ctx, clients, set.Pods, o.domainLabel)
	top := New(set, o.domainLabel, domains)
	if err != nil {
		// A user of a namespace often may not read nodes; all else can be shown.
		top.Notes = append(top.Notes, "domains are not known: "+err.Error())
	}
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, kind.Title+"Top", top)
	}
	terminal := f.Terminal()
	return terminal.Lines(f.Out, top.Lines(terminal, o.all)...)
}
