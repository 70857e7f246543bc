// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// maxWrites is how often the ConfigMap is written when a server writes it too.
const maxWrites = 5

// acceptance is `store accept`.
type acceptance struct {
	uuid        string
	revision    int64
	abandonJobs bool
	// namespaces is which objects get the UID of their namespace; empty if the store itself is accepted. namespace limits that to one.
	namespaces, namespace string
	dryRun                dryRun
}

func newAccept(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	var a acceptance
	cmd := &cobra.Command{
		Use:   "accept (--uuid=UUID --revision=REVISION | --namespaces=MODE)",
		Short: "Serve a store that a server refuses, or accept its objects in the present namespaces",
		Long: "Accept the store that a server refuses: it becomes the store of this cluster, and the server serves it within seconds.\n" +
			"The garbage collector then deletes the children (StatefulSets, Jobs and so on) of owners that this store does not have. If there is " +
			"a better store, like a\n" +
			"newer backup or the right volume, use that instead.\n\n" +
			"The UUID and the revision are those that \"store status\" shows. They hold for this store in this state only.\n\n" +
			"With --namespaces, the server must serve the store. Each JobSet, SequentialJob, LeaderWorkerSet and DisaggregatedSet then gets " +
			"the UID of its\n" +
			"present namespace, by which the controller recognizes objects that are older than their namespace. Imported objects, and those " +
			"of older\n" +
			"versions, have none. In a cluster that was built again, all objects are older, and the controller holds them until you accept them\n" +
			"there. The command may be interrupted and repeated.",
		Example: "  # What is refused?\n  jobset-apiserver store status\n\n" +
			"  # Keep the Jobs, then accept the store\n  jobset-apiserver store release-orphans\n" +
			"  jobset-apiserver store accept --uuid=6f1c2f0a-3f77-4f0e-8b57-0d6d3f2f4f0e --revision=0\n\n" +
			"  # The cluster was built again: how many objects of each namespace would run?\n" +
			"  jobset-apiserver store accept --namespaces=all --dry-run=client",
		Args: noArguments,
	}
	cmd.Flags().StringVar(&a.uuid, "uuid", "", "UUID of the store that is refused, as shown by \"store status\".")
	cmd.Flags().Int64Var(&a.revision, "revision", 0, "Revision of the store that is refused, as shown by \"store status\".")
	cmd.Flags().BoolVar(&a.abandonJobs, "abandon-jobs", false,
		"Also accept that the garbage collector deletes the Jobs, StatefulSets and other objects whose owners are lost.")
	cmd.Flags().StringVar(&a.namespaces, "namespaces", "", `Which objects get the UID of their present namespace: "missing" for those `+
		`without one, or "all" for those of an earlier namespace of the same name, too.`)
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", "With --namespaces: only objects in this namespace.")
	a.dryRun.addFlag(cmd)
	flags := addClusterFlags(cmd)
	cmd.RunE = connecting(connect, flags, func() error { return a.validate(cmd) }, func(ctx context.Context, c *clients) error {
		if a.namespaces != "" {
			n := newNamespaceRecords(c, streams, a)
			return n.run(ctx)
		}
		if err := a.run(ctx, c); err != nil {
			return err
		}
		_, err := fmt.Fprintf(streams.Out, "store %s at revision %d accepted%s\n", a.uuid, a.revision, a.dryRun.suffix())
		return err
	})
	return cmd
}

func (a *acceptance) validate(cmd *cobra.Command) error {
	if cmd.Flags().Changed("namespaces") {
		return a.validateNamespaces(cmd)
	}
	if a.namespace != "" {
		return errors.New("--namespace: must be set with --namespaces only: a store is accepted as a whole")
	}
	if a.uuid == "" {
		return errors.New("--uuid: must be that of the store that is refused; \"store status\" shows it")
	}
	if !cmd.Flags().Changed("revision") {
		return errors.New("--revision: must be that of the store that is refused; \"store status\" shows it")
	}
	return a.dryRun.validate()
}

// validateNamespaces checks the flags of an acceptance of objects.
func (a *acceptance) validateNamespaces(cmd *cobra.Command) error {
	if a.namespaces != namespacesMissing && a.namespaces != namespacesAll {
		return fmt.Errorf("--namespaces: must be %s or %s, not %q", namespacesMissing, namespacesAll, a.namespaces)
	}
	for _, name := range []string{"uuid", "revision", "abandon-jobs"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: must not be set with --namespaces: accept the store first, and its objects once the server serves them", name)
		}
	}
	return a.dryRun.validate()
}

// run writes the acceptance into the record. A server may confirm its refusal at the same time.
func (a *acceptance) run(ctx context.Context, c *clients) error {
	for try := 1; ; try++ {
		err := a.try(ctx, c)
		if err == nil || !apierrors.IsConflict(err) || try == maxWrites {
			return err
		}
	}
}

func (a *acceptance) try(ctx context.Context, c *clients) error {
	cm, record, err := c.getRecord(ctx)
	if err != nil {
		return err
	}
	if record == nil || record.Refusal == nil {
		return a.nothingRefused(record)
	}
	if err := a.check(record.Refusal); err != nil {
		return err
	}
	if !a.abandonJobs {
		if err := c.nothingLost(ctx, record); err != nil {
			return err
		}
	}
	record.Accepted = &witness.Acceptance{NewUUID: a.uuid, Revision: a.revision, AbandonJobs: a.abandonJobs}
	if a.dryRun.client() {
		return nil
	}
	return c.putRecord(ctx, cm, record, a.dryRun.options())
}

// nothingRefused says why there is nothing to accept. A store that was accepted and adopted is no error.
func (a *acceptance) nothingRefused(record *witness.Record) error {
	switch {
	case record == nil:
		return fmt.Errorf("no server refuses a store: ConfigMap %s/%s does not exist", witness.Namespace, witness.Name)
	case record.Restored != nil && record.UUID == a.uuid:
		return nil
	}
	return fmt.Errorf("no server refuses a store; the store of this cluster is %s", record.UUID)
}

// check compares the acceptance with what is refused.
func (a *acceptance) check(refusal *witness.Refusal) error {
	switch {
	case refusal.Reason == witness.ReasonNewerFormat:
		return errors.New("a newer version of jobset-apiserver has written this store: run that version; the store cannot be accepted for " +
			"this one")
	case refusal.NewUUID != a.uuid:
		return fmt.Errorf("--uuid: must be %s, which %s refuses, not %s: look at \"store status\" again", refusal.NewUUID, refusal.Server, a.uuid)
	case refusal.Revision != a.revision:
		return fmt.Errorf("--revision: must be %d, which %s refuses, not %d: look at \"store status\" again", refusal.Revision, refusal.Server,
			a.revision)
	}
	return nil
}

// nothingLost returns an error if the garbage collector would delete anything. It no longer deletes released objects.
func (c *clients) nothingLost(ctx context.Context, record *witness.Record) error {
	losses := record.Refusal.Losses()
	if losses.Any() {
		if list, err := c.getLostOwners(ctx, record); err == nil && !list.More {
			if losses, err = c.lossesOf(ctx, list); err != nil {
				return err
			}
		}
	}
	if !losses.Any() {
		return nil
	}
	return fmt.Errorf("--abandon-jobs: the garbage collector will delete %s. To keep them, run \"store release-orphans\" first. To let "+
		"them go, add --abandon-jobs", losses)
}

// putRecord writes the ConfigMap that was read.
func (c *clients) putRecord(ctx context.Context, cm *corev1.ConfigMap, record *witness.Record, dryRun []string) error {
	if err := record.Write(cm); err != nil {
		return err
	}
	_, err := c.kube.CoreV1().ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{DryRun: dryRun})
	return explain(err)
}
