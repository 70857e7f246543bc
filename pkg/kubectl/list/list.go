// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package list is `kubectl jobset list`: the objects of a namespace or of all of them, one line each. The rows of JobSets come from the
// server's table, so that they match `kubectl get jobsets -o wide`; lists are read in pages, and only rows are kept.
package list

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const long = `List objects of all kinds, or of one: JobSets (js), SequentialJobs (sj), LeaderWorkerSets (lws) and
DisaggregatedSets (ds). In a list of all kinds, names are KIND/NAME, as other commands take them.

READY counts, of a JobSet, Jobs that are ready or have succeeded; of a SequentialJob, steps that have succeeded; of the others,
groups that are ready. ATTEMPT is the current attempt of a JobSet, of the attempts that the set can reach with the restarts that
are left. QUEUE is the value of the label kueue.x-k8s.io/queue-name. Phases and numbers are those of "kubectl get -o wide".

With --watch, a line follows for each change of what is shown; objects that were deleted have the phase Deleted.`

const example = `  # All objects of the namespace
  kubectl jobset list

  # The LeaderWorkerSets
  kubectl jobset list lws

  # The objects of all namespaces that do not run, the newest first
  kubectl jobset list -A --phase=Pending,Failed --sort-by=age

  # What waits in the queue "gpu", and each change of it
  kubectl jobset list --queue=gpu -w

  # Names of the JobSets that have failed, for a script
  kubectl jobset list js --phase=Failed -o jsonpath='{.items[*].name}'`

// Report is what -o json prints.
type Report struct {
	Items []Row `json:"items"`
}

// options are the flags of the command.
type options struct {
	allNamespaces, watch    bool
	selector, queue, sortBy string
	phases                  []string
	// kinds are the kinds to list.
	kinds []*listed
	// queueGiven means that --queue was given, maybe empty.
	queueGiven bool
	output     cli.Output
}

// NewCommand returns `kubectl jobset list`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "list [KIND]",
		Aliases:           []string{"ls"},
		Short:             "List JobSets, SequentialJobs, LeaderWorkerSets and DisaggregatedSets with phase, ready parts, queue and reason",
		Long:              long,
		Example:           example,
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.queueGiven = cmd.Flags().Changed("queue")
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the objects of all namespaces.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After the list, print each change, until you end the command.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, like team=ml,tier!=test.")
	flags.StringSliceVar(&o.phases, "phase", nil, "Only objects in these phases: "+strings.Join(phases, ", ")+".")
	flags.StringVar(&o.queue, "queue", "", `Only objects of this queue, as the label `+jobsetv1alpha2.QueueNameKey+
		` names it; "" for objects without a queue.`)
	flags.StringVar(&o.sortBy, "sort-by", "name", "Order of the list. One of: ("+strings.Join(orderNames, ", ")+
		"). age begins with the newest, ready with the least ready, attempt with the most attempts.")
	o.output.AddFlags(cmd)
	for flag, values := range map[string][]string{"phase": phases, "sort-by": orderNames} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("queue", cobra.NoFileCompletions)
	return cmd
}

func (o *options) validate(args []string) error {
	if err := o.choose(args); err != nil {
		return err
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector: must be a label selector like team=ml, not %q: %w", o.selector, err)
	}
	if problems := validation.IsValidLabelValue(o.queue); len(problems) > 0 {
		return fmt.Errorf("--queue: must be the name of a queue, not %q: %s", o.queue, problems[0])
	}
	for i, phase := range o.phases {
		at := slices.IndexFunc(phases, func(known string) bool { return strings.EqualFold(known, phase) })
		if at < 0 {
			return fmt.Errorf("--phase: must be one of %s, not %q", strings.Join(phases, ", "), phase)
		}
		o.phases[i] = phases[at]
	}
	if orders[o.sortBy] == nil {
		return fmt.Errorf("--sort-by: must be one of %s, not %q", strings.Join(orderNames, ", "), o.sortBy)
	}
	if o.watch && !o.output.ForHumans() {
		return errors.New("--watch: prints text only; use `kubectl get jobsets --watch` for other formats")
	}
	return o.output.Validate()
}

// choose sets the kinds to list: all, or the one that the user gave.
func (o *options) choose(args []string) error {
	if o.kinds = kinds; len(args) == 0 {
		return nil
	}
	var words []string
	for _, k := range kinds {
		words = append(words, k.Short())
	}
	if len(args) > 1 {
		return fmt.Errorf("KIND: must be one of %s, or absent for all, not %d (%s)", strings.Join(words, ", "), len(args),
			strings.Join(args, ", "))
	}
	at := slices.IndexFunc(kinds, func(k *listed) bool { return k.Accepts(args[0]) })
	if at < 0 {
		return fmt.Errorf("KIND: must be one of %s, or absent for all, not %q; `kubectl jobset tree %s` shows one object",
			strings.Join(words, ", "), args[0], args[0])
	}
	o.kinds = kinds[at : at+1]
	return nil
}

// passes returns whether the list goes on without a kind: one of several that the cluster does not serve, or that the
// user may not read. JobSets are not left out silently.
func (o *options) passes(f *cli.Factory, s *source, err error) bool {
	if err == nil || len(o.kinds) == 1 || s.kind.Title == cli.JobSet.Title {
		return false
	}
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(f.ErrOut, "note: %ss are not listed: %v\n", s.kind.Title, err)
		return true
	}
	return cli.IsNotServed(err)
}

// completeKinds suggests the words for kinds.
func completeKinds(_ *cobra.Command, args []string, word string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, k := range kinds {
		for _, name := range k.Names {
			if len(args) == 0 && strings.HasPrefix(name, word) {
				words = append(words, name)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
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
	namespace := clients.Namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	var from []*source
	for _, k := range o.kinds {
		from = append(from, &source{kind: k, client: k.client(clients), namespace: namespace, labels: o.labelSelector(), whole: !k.tabled})
	}
	if o.watch {
		return o.follow(ctx, f, from)
	}
	report := Report{Items: []Row{}}
	for _, s := range from {
		if _, err := s.list(ctx, func(r Row) {
			if o.chosen(&r) {
				report.Items = append(report.Items, r)
			}
		}); err != nil && !o.passes(f, s, err) {
			return err
		}
	}
	sortRows(report.Items, o.sortBy)
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, "JobSetSummaryList", report)
	}
	if len(report.Items) == 0 {
		fmt.Fprintln(f.ErrOut, o.none(namespace))
		return nil
	}
	terminal, now := f.Terminal(), time.Now()
	rows := make([][]string, 0, len(report.Items))
	for i := range report.Items {
		rows = append(rows, o.cells(&report.Items[i], terminal, now))
	}
	return terminal.Lines(f.Out, terminal.Table(columns(o.allNamespaces), rows)...)
}

// none is printed in place of an empty list.
func (o *options) none(namespace string) string {
	var titles []string
	for _, k := range o.kinds {
		titles = append(titles, k.Title+"s")
	}
	text := "No " + cli.Join(titles, "or") + " found"
	if len(o.phases) > 0 || o.labelSelector() != "" {
		text += " that match"
	}
	if namespace == metav1.NamespaceAll {
		return text + "."
	}
	return text + " in namespace " + namespace + "."
}
