// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate is `kubectl jobset migrate`: it moves the objects of upstream's CustomResourceDefinitions to
// jobset-apiserver under running pods.
//
// A migration is a list of steps (steps.go). A journal in the cluster has which of them are done, so that the command may be killed
// and run again; a Lease keeps two of them from running at the same time. Until the groups are routed to jobset-apiserver, the
// CustomResourceDefinition has the objects that count.
package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const long = `Move JobSets, LeaderWorkerSets and DisaggregatedSets from the CustomResourceDefinitions of another controller to
jobset-apiserver, and back. Pods go on running: the objects keep their UIDs, so that Jobs, StatefulSets and pods keep their owners.

The command may be interrupted at any time. Run it again to go on, or run the one for the other direction to undo what was done;
this is possible until the groups are routed to the other server. Writes of the objects are refused for a short time.`

// minFreeze is the shortest time after which a freeze may end by itself: some steps may take half of it.
const minFreeze = time.Minute

const example = `  # Move all objects to jobset-apiserver, or go on with a migration that was interrupted
  kubectl jobset migrate to-server

  # The same in a Job in the cluster, which goes on when this machine is switched off
  kubectl jobset migrate to-server --in-cluster

  # Show how far it is
  kubectl jobset migrate status

  # Move them back
  kubectl jobset migrate to-crd`

// NewCommand returns `kubectl jobset migrate`.
func NewCommand(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Move objects between CustomResourceDefinitions and jobset-apiserver",
		Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("name a direction, %s or %s, or status", ToServer, ToCRD)
		},
	}
	cmd.AddCommand(
		newMove(f, ToServer, "Move objects from CustomResourceDefinitions to jobset-apiserver"),
		newMove(f, ToCRD, "Move objects from jobset-apiserver to CustomResourceDefinitions"),
		newStatus(f),
	)
	return cmd
}

// moveOptions are the flags of a direction.
type moveOptions struct {
	freezeFor         time.Duration
	dryRun, inCluster bool
	image             string
	// inJob is set in the Job that inCluster creates.
	inJob bool
}

func (o *moveOptions) validate() error {
	switch {
	case o.freezeFor < minFreeze:
		return fmt.Errorf("--freeze-timeout: must be at least %s, not %s", minFreeze, o.freezeFor)
	case o.inCluster && o.dryRun:
		return errors.New("--in-cluster: a dry run runs here: leave out --in-cluster or --dry-run")
	case o.image != "" && !o.inCluster:
		return errors.New("--image: has no effect without --in-cluster")
	}
	return nil
}

func newMove(f *cli.Factory, direction Direction, short string) *cobra.Command {
	o := &moveOptions{freezeFor: 10 * time.Minute}
	cmd := &cobra.Command{
		Use: string(direction), Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			if o.inCluster {
				return runInCluster(cmd.Context(), f, direction, o)
			}
			return runHere(cmd.Context(), f, direction, o)
		},
	}
	cmd.Flags().DurationVar(&o.freezeFor, "freeze-timeout", o.freezeFor, "How long writes are refused at most. After that time the cluster "+
		"accepts them again, even if this command does not run any more.")
	cmd.Flags().BoolVar(&o.inCluster, "in-cluster", false, "Run the migration in a Job in namespace "+systemNamespace+", and follow it. "+
		"It goes on if this command is interrupted.")
	cmd.Flags().StringVar(&o.image, "image", "", "Image of kubectl-jobset for --in-cluster. The default is the image of jobset-apiserver "+
		"with another name.")
	cmd.Flags().BoolVar(&o.inJob, inJobFlag, false, "This command runs in the Job of --in-cluster.")
	_ = cmd.Flags().MarkHidden(inJobFlag) // it fails for unknown flags only
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only report what would be moved, stopped, rejected and lost, and for how "+
		"long writes would be refused.")
	return cmd
}

// runHere carries out a migration in this process.
func runHere(ctx context.Context, f *cli.Factory, direction Direction, o *moveOptions) error {
	m, identity, err := newMover(f, o.freezeFor)
	if err != nil {
		return err
	}
	err = alone(ctx, m.kube, identity, f.Out, func(ctx context.Context) error {
		if o.dryRun {
			return m.report(ctx, direction)
		}
		return m.move(ctx, direction)
	})
	if o.inJob {
		return endInJob(ctx, m.kube, err)
	}
	return err
}

// newMover returns what carries out a migration, and the name of this process.
func newMover(f *cli.Factory, freezeFor time.Duration) (*mover, string, error) {
	f.NoWarnings = true // they are for those who write objects by hand: a migration writes them as they are
	clients, err := f.Clients()
	if err != nil {
		return nil, "", err
	}
	host, err := os.Hostname()
	return &mover{
		kube: clients.Kube, dynamic: clients.Dynamic, metadata: clients.Metadata, discovery: clients.Discovery,
		store: &store{clients.Kube.CoreV1().RESTClient()}, router: &router{clients.Dynamic},
		clock: clock.RealClock{}, out: f.Out, freezeFor: freezeFor,
	}, fmt.Sprintf("%s-%d", host, os.Getpid()), err
}

// move carries out a migration, goes on with the one that the journal has, or undoes it.
func (m *mover) move(ctx context.Context, direction Direction) error {
	journal, err := readJournal(ctx, m.kube)
	if err != nil {
		return err
	}
	if journal == nil || journal.Ended != nil {
		return m.begin(ctx, direction, journal)
	}
	m.journal, m.subjects = journal, journal.subjects()
	began := cli.Ago(m.clock.Now(), journal.Started.Time)
	if journal.Direction == direction && !journal.Undoing {
		fmt.Fprintf(m.out, "Continuing migration %s, which began %s\n", journal.ID, began)
		return m.run(ctx, stepsOf[direction])
	}
	if left := leaving[journal.Direction]; journal.step(left) != nil {
		return final(fmt.Errorf("migration %s %s cannot be undone, because the API groups are being switched to the other server already: "+
			"run kubectl jobset migrate %[2]s to end it, and then kubectl jobset migrate %[3]s", journal.ID, journal.Direction, direction))
	}
	fmt.Fprintf(m.out, "Undoing migration %s %s, which began %s\n", journal.ID, journal.Direction, began)
	journal.Undoing = true
	if err := m.run(ctx, undo[journal.Direction]); err != nil || journal.Direction != direction {
		return err
	}
	return m.begin(ctx, direction, journal)
}

// begin begins a migration of what is not where it should be.
func (m *mover) begin(ctx context.Context, direction Direction, last *Journal) error {
	if err := m.find(ctx, direction); err != nil {
		return err
	}
	if len(m.subjects) == 0 {
		fmt.Fprintln(m.out, nothing[direction])
		return nil
	}
	m.journal = &Journal{
		ID: rand.String(8), Direction: direction, Started: m.now(),
		Saved: map[string]json.RawMessage{}, Replicas: map[string]int32{}, OwnReplicas: map[string]int32{},
	}
	for _, s := range m.subjects {
		m.journal.Resources = append(m.journal.Resources, s.definition())
	}
	if last != nil {
		m.journal.stored = last.stored
		maps.Copy(m.journal.Saved, last.Saved)
		maps.Copy(m.journal.Replicas, last.Replicas)
	}
	if err := m.journal.write(ctx, m.kube); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "Migration %s %s of %s\n", m.journal.ID, direction, strings.Join(m.journal.Resources, ", "))
	return m.run(ctx, stepsOf[direction])
}

// find looks for what is not where it should be.
func (m *mover) find(ctx context.Context, direction Direction) error {
	found, err := present(ctx, m.dynamic)
	if err != nil {
		return err
	}
	for _, s := range found {
		routed, err := m.router.routed(ctx, s)
		if err != nil {
			return fmt.Errorf("APIService %s: %w", s.apiService(), err)
		}
		if routed == (direction == ToCRD) {
			m.subjects = append(m.subjects, s)
		}
	}
	return nil
}

const noDefinition = "no CustomResourceDefinition of JobSets, LeaderWorkerSets or DisaggregatedSets "

var (
	stepsOf = map[Direction][]step{ToServer: toServer, ToCRD: toCRD}
	undo    = map[Direction][]step{ToServer: undoToServer, ToCRD: undoToCRD}
	// leaving is the step that switches the API groups to the other server.
	leaving = map[Direction]string{ToServer: stepRoute, ToCRD: stepServe}
	// nothing says that all objects are where they are to be moved.
	nothing = map[Direction]string{
		ToServer: "There is nothing to move: " + noDefinition + "serves its group.",
		ToCRD:    "There is nothing to move: " + noDefinition + "is behind jobset-apiserver.",
	}
)

func newStatus(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the last migration", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clients, err := f.Clients()
			if err != nil {
				return err
			}
			journal, err := readJournal(cmd.Context(), clients.Kube)
			if err != nil {
				return err
			}
			return f.Terminal().Lines(f.Out, journal.lines(time.Now())...)
		},
	}
}

// lines describe a migration.
func (j *Journal) lines(now time.Time) []string {
	if j == nil {
		return []string{"No migration has begun."}
	}
	state := "has not ended: run kubectl jobset migrate " + string(j.Direction) + " to go on"
	if j.Ended != nil {
		state = "ended " + cli.Ago(now, j.Ended.Time)
	}
	lines := []string{fmt.Sprintf("Migration %s %s of %s began %s and %s.", j.ID, j.Direction, strings.Join(j.Resources, ", "),
		cli.Ago(now, j.Started.Time), state)}
	if j.FrozenUntil != nil && j.Ended == nil {
		lines = append(lines, "Writes are refused until "+j.FrozenUntil.UTC().Format(time.RFC3339)+" at the latest.")
	}
	for _, s := range j.Steps {
		lines = append(lines, fmt.Sprintf("  %-10s %s%s", s.Name, took(s.Started, s.Ended), s.counts()))
	}
	return lines
}

func took(begin metav1.Time, end *metav1.Time) string {
	if end == nil {
		return "has not ended"
	}
	return cli.Duration(end.Sub(begin.Time))
}
