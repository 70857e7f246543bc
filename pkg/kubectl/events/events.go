// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events is `kubectl jobset events`: the events about a set, and about its Jobs, pods, Service and volume claims, in one list by
// time. The events of the namespace are read in pages; only the newest that belong to the set are kept.
package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

const long = `Show the events about a JobSet and about its Jobs, pods, Service and volume claims, about a SequentialJob (sqj/NAME) and
all that belongs to its steps, about a LeaderWorkerSet (lws/NAME) and its StatefulSets, pods, Services and volume claims, or about
a DisaggregatedSet (dset/NAME), its scalers and the LeaderWorkerSets of its roles. They are in the order in which they were seen last.
Events about pods that are gone are shown, too, as long as the cluster keeps them (one hour, by default).

At most 1000 events are shown, the newest.`

const example = `  # What happened to the set train
  kubectl jobset events train

  # Only warnings, as they come
  kubectl jobset events train --types=Warning -w

  # How often each reason was seen, for a script
  kubectl jobset events train -o json | jq -r '.items[] | "\(.count) \(.reason)"'`

// pageSize is how many events one answer holds.
const pageSize = 500

// eventTypes are the types of events.
var eventTypes = []string{corev1.EventTypeNormal, corev1.EventTypeWarning}

// Report is what -o json prints.
type Report struct {
	Items []Event `json:"items"`
	// LeftOut is how many older events are not among the items.
	LeftOut int `json:"leftOut,omitempty"`
}

// options are the flags of the command.
type options struct {
	watch  bool
	types  []string
	output cli.Output
}

// NewCommand returns `kubectl jobset events`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "events NAME",
		Short:             "Show the events of a JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet, its children and pods by time",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: cli.ReadObject(f, kinds, func(*cobra.Command) error { return o.validate() },
			func(ctx context.Context, kind cli.For[Loader], name string) error { return o.run(ctx, f, kind, name) }),
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "After the list, print each event as it comes, until you end the command.")
	cmd.Flags().StringSliceVar(&o.types, "types", nil, "Only events of these types: "+strings.Join(eventTypes, ", ")+".")
	_ = cmd.RegisterFlagCompletionFunc("types", cobra.FixedCompletions(eventTypes, cobra.ShellCompDirectiveNoFileComp))
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) validate() error {
	for i, given := range o.types {
		at := slices.IndexFunc(eventTypes, func(known string) bool { return strings.EqualFold(known, given) })
		if at < 0 {
			return fmt.Errorf("--types: must be one of %s, not %q", strings.Join(eventTypes, ", "), given)
		}
		o.types[i] = eventTypes[at]
	}
	if o.watch && !o.output.ForHumans() {
		return errors.New("--watch: prints text only; use `kubectl get events --watch` for other formats")
	}
	return o.output.Validate()
}

func (o *options) run(ctx context.Context, f *cli.Factory, kind cli.For[Loader], name string) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	members, err := kind.Do(ctx, clients, name)
	if err != nil {
		return err
	}
	r := &reader{clients: clients, members: members, types: o.types}
	found, version, err := r.list(ctx)
	if err != nil {
		return err
	}
	if !o.output.ForHumans() {
		return o.output.PrintReport(f.Out, kind.Title+"Events", Report{Items: append([]Event{}, found.events...), LeftOut: found.left})
	}
	terminal := f.Terminal()
	printer := &cli.Rows{Columns: columns}
	if found.left > 0 {
		fmt.Fprintf(f.ErrOut, "%s not shown\n", cli.Count(found.left, "older event"))
	}
	show := func(events ...Event) error {
		now := time.Now()
		rows := make([][]string, 0, len(events))
		for i := range events {
			rows = append(rows, events[i].cells(terminal, now))
		}
		return terminal.Lines(f.Out, printer.Lines(terminal, rows)...)
	}
	if len(found.events) == 0 {
		fmt.Fprintf(f.ErrOut, "No events found for %s in namespace %s.\n", kind.Names[0]+"/"+name, clients.Namespace)
	} else if err := show(found.events...); err != nil {
		return err
	}
	if !o.watch {
		return nil
	}
	return r.follow(ctx, version, func(e Event) error { return show(e) })
}

// reader reads the events of the members.
type reader struct {
	clients *cli.Clients
	members Members
	types   []string
}

// wanted returns whether the event is about a member, and of the types.
func (r *reader) wanted(e *corev1.Event) bool {
	if len(r.types) > 0 && !slices.Contains(r.types, e.Type) || !r.members.Has(e.InvolvedObject.Kind, e.InvolvedObject.Name) {
		return false
	}
	seen := newEvent(e)
	return !seen.Time.Time.Before(r.members.Since())
}

// list returns the newest events, and the version from which a watch goes on.
func (r *reader) list(ctx context.Context) (found newest, version string, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := r.clients.Kube.CoreV1().Events(r.clients.Namespace).List(ctx, options)
		if err != nil {
			return found, "", fmt.Errorf("listing events: %w", err)
		}
		for i := range page.Items {
			if r.wanted(&page.Items[i]) {
				found.add(newEvent(&page.Items[i]))
			}
		}
		if version == "" {
			version = page.ResourceVersion
		}
		if options.Continue = page.Continue; options.Continue == "" {
			found.cut()
			return found, version, nil
		}
	}
}

// Members are an object and what belongs to it. It is known by names, so that events about pods that are gone belong to it, too.
type Members interface {
	// Has returns whether the object of the kind is one of them.
	Has(kind, name string) bool
	// Since is when the object was created. Events before are about another one of its name.
	Since() time.Time
}

// Loader reads an object of a kind and returns its members.
type Loader func(ctx context.Context, c *cli.Clients, name string) (Members, error)

// getter is a client of one kind in one namespace.
type getter[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// load reads an object, and works out its members.
func load[T any, M Members](ctx context.Context, client getter[T], name string, membersOf func(T) M) (Members, error) {
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return membersOf(object), nil
}
