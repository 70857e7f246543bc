// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top is `kubectl jobset top`: how much of a JobSet or a LeaderWorkerSet is ready, where it runs and what it
// requests there, and of a JobSet its ready share and its goodput.
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

Of a JobSet with exclusive placement, each Job is shown with its topology domain, Jobs with pods that are not ready first.

Of a LeaderWorkerSet (lws/NAME), the groups are shown in place of attempts and shares, those that are not ready first.

Requests are those of pods that have not ended. For usage, see "kubectl top pods". Nodes with pods that are not ready come first.`

const example = `  # Show the set train
  kubectl jobset top train

  # Show the groups of the LeaderWorkerSet vllm
  kubectl jobset top lws/vllm

  # By rack, as the label of the nodes says
  kubectl jobset top train --domain-label=example.com/rack

  # The ready share, for a script
  kubectl jobset top train -o json | jq .readyShare.share`

// options are the flags of the command.
type options struct {
	domainLabel string
	// labelIsGiven reports that the user names the label.
	labelIsGiven bool
	all          bool
	output       cli.Output
}

// Loader reads an object of a kind and what belongs to it.
type Loader func(ctx context.Context, c *cli.Clients, name string) (Subject, error)

// Subject is an object with what was read of it.
type Subject interface {
	// placed are the pods whose nodes and domains are shown.
	placed() []*corev1.Pod
	// topology is the label of nodes by which Jobs have domains of their own; empty if none have.
	topology() string
	// figures derives what is shown. Domains are by name of node, nil when they are not known.
	figures(domainLabel string, domains map[string]string) View
}

// View is what the command shows of an object; as data, it is the object itself.
type View interface {
	// Lines returns the figures as text. Few lines are shown of what is many, unless all are asked for.
	Lines(terminal cli.Terminal, all bool) []string
	// note adds what could not be found out.
	note(text string)
}

// NewCommand returns `kubectl jobset top`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "top NAME",
		Short:             "Show ready pods, requests by node and domain, attempts or groups, ready share and goodput",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: cli.ReadObject(f, kinds, func(cmd *cobra.Command) error {
			o.labelIsGiven = cmd.Flags().Changed("domain-label")
			return o.validate()
		}, func(ctx context.Context, kind cli.For[Loader], name string) error { return o.run(ctx, f, kind, name) }),
	}
	cmd.Flags().StringVar(&o.domainLabel, "domain-label", corev1.LabelTopologyZone, "Label of the nodes that names their topology domain. "+
		"Unless given, it is that of the exclusive placement of the JobSet, if it has one.")
	cmd.Flags().BoolVar(&o.all, "all", false, "Show every node and domain, however many there are.")
	_ = cmd.RegisterFlagCompletionFunc("domain-label", cobra.FixedCompletions(
		[]cobra.Completion{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable},
		cobra.ShellCompDirectiveNoFileComp))
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
	subject, err := kind.Do(ctx, clients, name)
	if err != nil {
		return err
	}
	label := o.domainLabel
	if topology := subject.topology(); topology != "" && !o.labelIsGiven {
		label = topology
	}
	domains, err := snapshot.Domains(ctx, clients, subject.placed(), label)
	top := subject.figures(label, domains)
	if err != nil {
		// A user of a namespace often may not read nodes; all else can be shown.
		top.note("domains are not known: " + err.Error())
	}
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, kind.Title+"Top", top)
	}
	terminal := f.Terminal()
	return terminal.Lines(f.Out, top.Lines(terminal, o.all)...)
}
