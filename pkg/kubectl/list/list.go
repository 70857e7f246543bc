// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package list is `kubectl jobset list`: the sets of a namespace or of all of them, one line each. The rows come from the server's
// table, so that they are those of `kubectl get jobsets -o wide`; it is read in pages, and only rows are kept.
package list

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const long = `List JobSets with their phase, Jobs that are ready, attempt, queue, age and the reason for the phase: the words and
numbers of "kubectl get jobsets -o wide".

READY counts Jobs that are ready or have succeeded, of all Jobs. ATTEMPT is the current attempt, of the attempts that the
set can reach with the restarts that are left. QUEUE is the value of the label kueue.x-k8s.io/queue-name.

With --watch, a line follows for each change of what is shown; sets that were deleted have the phase Deleted.`

const example = `  # The sets of the namespace
  kubectl jobset list

  # The sets of all namespaces that do not run, the newest first
  kubectl jobset list -A --phase=Pending,Failed --sort-by=age

  # What waits in the queue "gpu", and each change of it
  kubectl jobset list --queue=gpu -w

  # Names of the sets that have failed, for a script
  kubectl jobset list --phase=Failed -o jsonpath='{.items[*].name}'`

// Report is what -o json prints.
type Report struct {
	Items []Row `json:"items"`
}

// options are the flags of the command.
type options struct {
	allNamespaces, watch    bool
	selector, queue, sortBy string
	phases                  []string
	// queueGiven means that --queue was given, maybe empty.
	queueGiven bool
	output     cli.Output
}

// NewCommand returns `kubectl jobset list`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List JobSets with phase, ready Jobs, attempt, queue and reason",
		Long:              long,
		Example:           example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.queueGiven = cmd.Flags().Changed("queue")
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the sets of all namespaces.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After the list, print each change, until you end the command.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Only sets with these labels, like team=ml,tier!=test.")
	flags.StringSliceVar(&o.phases, "phase", nil, "Only sets in these phases: "+strings.Join(helper.Phases, ", ")+".")
	flags.StringVar(&o.queue, "queue", "", `Only sets of this queue, as the label `+jobsetv1alpha2.QueueNameKey+` names it; "" for sets without a queue.`)
	flags.StringVar(&o.sortBy, "sort-by", "name", "Order of the list. One of: ("+strings.Join(orderNames, ", ")+"). age begins with the newest, ready with the least ready, attempt with the most attempts.")
	o.output.AddFlags(cmd)
	for flag, values := range map[string][]string{"phase": helper.Phases, "sort-by": orderNames} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("queue", cobra.NoFileCompletions)
	return cmd
}

func (o *options) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: list takes no names; `kubectl jobset tree %s` shows one set", args[0], args[0])
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector: must be a label selector like team=ml, not %q: %w", o.selector, err)
	}
	if problems := validation.IsValidLabelValue(o.queue); len(problems) > 0 {
		return fmt.Errorf("--queue: must be the name of a queue, not %q: %s", o.queue, problems[0])
	}
	for i, phase := range o.phases {
		at := slices.IndexFunc(helper.Phases, func(known string) bool { return strings.EqualFold(known, phase) })
		if at < 0 {
			return fmt.Errorf("--phase: must be one of %s, not %q", strings.Join(helper.Phases, ", "), phase)
		}
		o.phases[i] = helper.Phases[at]
	}
	if orders[o.sortBy] == nil {
		return fmt.Errorf("--sort-by: must be one of %s, not %q", strings.Join(orderNames, ", "), o.sortBy)
	}
	if o.watch && !o.output.ForHumans() {
		return errors.New("--watch: prints text only; use `kubectl get jobsets --watch` for other formats")
	}
	return o.output.Validate()
}

// labelSelector joins --selector and --queue.
func (o *options) labelSelector() string {
	var parts []string
	if o.selector != "" {
		parts = append(parts, o.selector)
	}
	switch {
	case o.queue != "":
		parts = append(parts, jobsetv1alpha2.QueueNameKey+"="+o.queue)
	case o.queueGiven:
		parts = append(parts, "!"+jobsetv1alpha2.QueueNameKey)
	}
	return strings.Join(parts, ",")
}

// chosen returns whether the row is one of those that the user wants to see.
func (o *options) chosen(r *Row) bool {
	return len(o.phases) == 0 || slices.Contains(o.phases, r.Phase)
}

func (o *options) run(ctx context.Context, f *cli.Factory) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	from := &source{client: clients.JobSets.JobsetV1alpha2().RESTClient(), namespace: clients.Namespace, labels: o.labelSelector()}
	if o.allNamespaces {
		from.namespace = metav1.NamespaceAll
	}
	if o.watch {
		return o.follow(ctx, f, from)
	}
	report := Report{Items: []Row{}}
	if _, err := from.list(ctx, func(r Row) {
		if o.chosen(&r) {
			report.Items = append(report.Items, r)
		}
	}); err != nil {
		return err
	}
	sortRows(report.Items, o.sortBy)
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, "JobSetSummaryList", report)
	}
	if len(report.Items) == 0 {
		fmt.Fprintln(f.ErrOut, o.none(from.namespace))
		return nil
	}
	terminal, now := f.Terminal(), time.Now()
	rows := make([][]string, 0, len(report.Items))
	for i := range report.Items {
		rows = append(rows, report.Items[i].cells(terminal, o.allNamespaces, now))
	}
	return terminal.Lines(f.Out, terminal.Table(columns(o.allNamespaces), rows)...)
}

// none is printed in place of an empty list.
func (o *options) none(namespace string) string {
	text := "No JobSets found"
	if len(o.phases) > 0 || o.labelSelector() != "" {
		text += " that match"
	}
	if namespace == metav1.NamespaceAll {
		return text + "."
	}
	return text + " in namespace " + namespace + "."
}
