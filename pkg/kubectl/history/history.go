// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history is `kubectl jobset history`: the runs of the archive, one line each. They are read in pages, and each page is printed
// before the next one is read.
package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
)

const long = `List the runs of the archive: executions of JobSets, SequentialJobs and LeaderWorkerSets that have ended, the last
first. With NAME, only the runs of the objects of this name; KIND/NAME is one kind.

The archive has a run also after its object was deleted. STATE is how the run ended: Completed, Failed, Cancelled, or Deleted while
it ran. LASTED is the time from its begin to its end. "why", "timeline" and "tree" take a run as run/NAME.

The flag --user selects runs by the user who created the object. In this command, it is not the user of the kubeconfig.`

const example = `  # The last runs of the namespace
  kubectl jobset history

  # The runs of the set train
  kubectl jobset history train

  # What failed in the last week, in all namespaces, with queue, cause and node
  kubectl jobset history -A --state=Failed --since=7d -o wide

  # The runs of alice that a lost node interrupted
  kubectl jobset history --user=alice --cause=NodeLost

  # All runs of the last month, for a spreadsheet
  kubectl jobset history -A --since=30d --limit=0 -o csv

  # Why did the last run fail?
  kubectl jobset why run/$(kubectl jobset history train --limit=1 -o jsonpath='{.items[0].metadata.name}')`

// The formats of the command's own.
const (
	formatWide = "wide"
	formatCSV  = "csv"
)

// defaultLimit is how many runs are printed unless the user asks for more.
const defaultLimit = 50

// options are the flags of the command.
type options struct {
	allNamespaces          bool
	since, selector, state string
	kind                   string
	user, queue            string
	cause, node            string
	limit                  int
	output                 cli.Output
	query                  record.Query
}

// NewCommand returns `kubectl jobset history`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "history [NAME]",
		Short:             "List the runs of the archive: executions that have ended, also of objects that were deleted",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Recorded(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd, args, time.Now()); err != nil {
				return err
			}
			return o.run(cmd.Context(), f)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the runs of all namespaces.")
	flags.StringVar(&o.since, "since", "", "Only runs that ended in this time, like 30d, 2w or 12h. By default, runs of any time.")
	flags.StringVar(&o.state, "state", "", "Only runs that ended like this. One of: ("+strings.Join(record.States, ", ")+").")
	flags.StringVar(&o.kind, "kind", "", "Only runs of objects of this kind. One of: ("+strings.Join(kindWords(), ", ")+").")
	flags.StringVar(&o.user, "user", "", "Only runs of objects that this user created.")
	flags.StringVar(&o.queue, "queue", "", `Only runs of this queue; "" for runs without a queue.`)
	flags.StringVar(&o.cause, "cause", "", "Only runs with a failure of this reason, like OOMKilled or NodeLost.")
	flags.StringVar(&o.node, "node", "", "Only runs with a failure on this node.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Only runs of objects with these labels, like team=ml,tier!=test.")
	flags.IntVar(&o.limit, "limit", defaultLimit, "Print at most this number of runs; 0 for all.")
	o.output.AddFlags(cmd, formatWide, formatCSV)
	for flag, values := range map[string][]string{"state": record.States, "kind": kindWords()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, flag := range []string{"since", "user", "queue", "cause", "node", "selector", "limit"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// kindWords are the words for kinds of --kind.
func kindWords() (words []string) {
	for _, k := range record.Kinds {
		words = append(words, k.Short())
	}
	return words
}

// validate checks arguments and flags, and makes the query of them.
func (o *options) validate(cmd *cobra.Command, args []string, now time.Time) error {
	o.query = record.Query{Labels: o.selector, Fields: map[string]string{}}
	if o.since != "" {
		since, err := record.Duration(o.since)
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		o.query.Since = now.Add(-since)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector: must be a label selector like team=ml, not %q: %w", o.selector, err)
	}
	if o.limit < 0 {
		return fmt.Errorf("--limit: must be 0 for all runs, or more, not %d", o.limit)
	}
	for flag, value := range map[string]string{"user": o.user, "queue": o.queue, "cause": o.cause, "node": o.node} {
		if cmd.Flags().Changed(flag) {
			o.query.Fields[flag] = value
		}
	}
	if err := o.choose(args); err != nil {
		return err
	}
	return o.output.Validate()
}

// choose adds the object, the kind and the state to the query.
func (o *options) choose(args []string) error {
	if o.state != "" {
		at := slices.IndexFunc(record.States, func(known string) bool { return strings.EqualFold(known, o.state) })
		if at < 0 {
			return fmt.Errorf("--state: must be one of %s, not %q", strings.Join(record.States, ", "), o.state)
		}
		o.query.Fields["state"] = record.States[at]
	}
	if o.kind != "" {
		kind, found := kindOf(o.kind)
		if !found {
			return fmt.Errorf("--kind: must be one of %s, not %q", strings.Join(kindWords(), ", "), o.kind)
		}
		o.query.Fields["kind"] = kind.Title
	}
	if len(args) > 1 {
		return fmt.Errorf("NAME: must be the name of one object, not %d (%s)", len(args), strings.Join(args, ", "))
	}
	if len(args) == 0 {
		return nil
	}
	return o.chooseObject(args[0])
}

// chooseObject adds the object to the query, which is given as NAME or KIND/NAME.
func (o *options) chooseObject(arg string) error {
	word, name, slash := strings.Cut(arg, "/")
	if !slash {
		word, name = "", arg
	}
	if name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("NAME: must be NAME or KIND/NAME, not %q", arg)
	}
	o.query.Fields["object"] = name
	if !slash {
		return nil
	}
	kind, found := kindOf(word)
	switch {
	case cli.Run.Accepts(word):
		return fmt.Errorf("NAME: must be the name of an object that ran, not of a run; `kubectl jobset why %s` explains the run", arg)
	case !found:
		return fmt.Errorf("NAME: must be a %s, as NAME, %s/NAME, not %q", cli.Titles(record.Kinds, "or"),
			strings.Join(kindWords(), "/NAME, "), arg)
	case o.query.Fields["kind"] != "" && o.query.Fields["kind"] != kind.Title:
		return fmt.Errorf("--kind: must be the kind of %s or absent, not %q", arg, o.kind)
	}
	o.query.Fields["kind"] = kind.Title
	return nil
}

// kindOf returns the kind that a word means.
func kindOf(word string) (cli.Kind, bool) {
	at := slices.IndexFunc(record.Kinds, func(k cli.Kind) bool { return k.Accepts(strings.ToLower(word)) })
	if at < 0 {
		return cli.Kind{}, false
	}
	return record.Kinds[at], true
}

func (o *options) run(ctx context.Context, f *cli.Factory) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	if o.query.Namespace = clients.Namespace; o.allNamespaces {
		o.query.Namespace = metav1.NamespaceAll
	}
	p, found := o.printer(f, time.Now()), 0
	more, err := o.query.Pages(ctx, clients, o.limit, func(runs []archivev1alpha1.Run) error {
		found += len(runs)
		return p.page(runs)
	})
	if err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	if found == 0 && o.forHumans() {
		fmt.Fprintln(f.ErrOut, o.none())
	}
	if more && o.forHumans() {
		fmt.Fprintf(f.ErrOut, "note: there are more runs than these %s; --limit=0 prints all\n", cli.Number(found))
	}
	return nil
}

// forHumans returns whether the command prints a table.
func (o *options) forHumans() bool { return o.output.ForHumans() || o.output.Is(formatWide) }

// none is printed in place of an empty list.
func (o *options) none() string {
	text := "No runs found"
	if len(o.query.Fields) > 0 || o.selector != "" || o.since != "" {
		text += " that match"
	}
	if o.allNamespaces {
		return text + "."
	}
	return text + " in namespace " + o.query.Namespace + "."
}
