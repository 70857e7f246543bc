// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readinessgroup is `kubectl jobset groups`: groups of pods, whether or not a PodReadinessGroup describes them, with the figures on
// which the controller decides.
package readinessgroup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const long = `List groups of pods: those that pods name by the label batch.jobset-apiserver.io/pod-group or
podgroup.jhwagner.github.io/name, and PodReadinessGroups without pods.

SIZE is how many pods the group is meant to have, and SOURCE what says so: minMember of the PodReadinessGroup, a label (or
annotation) of a pod, the owners of the pods, or nothing but the pods that exist. PODS is how many exist, RUNNING how many of
them run or have succeeded, and READY how many carry the label that says that the group is ready. Pods that have failed or are
being deleted do not count.

STATE is Pending until enough pods run, then Ready, and Degraded while fewer than needed run after that.`

const example = `  # The groups of the namespace
  kubectl jobset groups

  # The groups of all namespaces, with what they wait for
  kubectl jobset groups -A -o wide

  # How many pods of the group train run, for a script
  kubectl jobset groups train -o jsonpath='{.items[0].running}'`

// wideFormat is the format with more columns.
const wideFormat = "wide"

// options are the flags of the command.
type options struct {
	allNamespaces bool
	output        cli.Output
}

// NewCommand returns `kubectl jobset groups`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "groups [NAME]",
		Short:             "List groups of pods with size, running and ready pods",
		Long:              long,
		Example:           example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := o.validate(args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), f, name)
		},
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the groups of all namespaces.")
	o.output.AddFlags(cmd, wideFormat)
	return cmd
}

// validate returns the name that was given, if any.
func (o *options) validate(args []string) (name string, err error) {
	if len(args) > 1 {
		return "", fmt.Errorf("NAME: must be one group, not %d", len(args))
	}
	if len(args) == 1 {
		name = args[0]
		if problems := validation.IsValidLabelValue(name); name == "" || len(problems) > 0 {
			return "", fmt.Errorf("NAME: must be the name of a group, which is the value of a label, not %q", name)
		}
	}
	return name, o.output.Validate()
}

func (o *options) run(ctx context.Context, f *cli.Factory, name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	namespace := clients.Namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	now := clock.RealClock{}.Now()
	report, err := load(ctx, clients, namespace, name, now)
	if err != nil {
		return err
	}
	if name != "" && len(report.Items) == 0 {
		return fmt.Errorf("NAME: no pod group %q%s; `kubectl jobset groups -A` lists all", name, in(namespace))
	}
	wide := o.output.Is(wideFormat)
	if !o.output.ForHumans() && !wide {
		return o.output.PrintReport(f.Out, "PodGroupList", report)
	}
	for _, note := range report.Notes {
		fmt.Fprintln(f.ErrOut, note)
	}
	if len(report.Items) == 0 {
		fmt.Fprintf(f.ErrOut, "No pod groups found%s.\n", in(namespace))
		return nil
	}
	terminal := f.Terminal()
	rows := make([][]string, 0, len(report.Items))
	for i := range report.Items {
		rows = append(rows, report.Items[i].cells(terminal, o.allNamespaces, wide, now))
	}
	return terminal.Lines(f.Out, terminal.Table(columns(o.allNamespaces, wide), rows)...)
}

func in(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return " in namespace " + namespace
}
