// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
)

func newBackup(streams genericiooptions.IOStreams) *cobra.Command {
	client, dir := options.NewStoreClient(), backup.Directory{Keep: options.DefaultBackupKeep, Now: time.Now}
	cmd := &cobra.Command{
		Use:   "backup FILE | --backup-dir=DIR",
		Short: "Back up the store of a server that runs",
		Long: "Save a snapshot of the store to a new file, or to a directory that keeps the newest backups. It is verified before it gets\n" +
			"its name. For an embedded etcd, run the command where the server runs and as the same user; for an external one, anywhere.",
		Example: "  # In the pod of a server with the embedded etcd\n" +
			"  jobset-apiserver store backup --data-dir=/var/lib/jobset-apiserver/data --backup-dir=/backups\n\n" +
			"  # An external etcd\n" +
			"  jobset-apiserver store backup jobset.db --etcd-servers=https://etcd:2379 --etcd-cafile=ca.crt --etcd-certfile=tls.crt " +
			"--etcd-keyfile=tls.key",
		Args: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (dir.Path == "") || len(args) > 1 {
				return errors.New("either one FILE or --backup-dir must be given: the file must not exist, the directory keeps the newest backups")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir.Path, "backup-dir", "", "Directory that keeps the newest backups, as that of the server.")
	cmd.Flags().IntVar(&dir.Keep, "backup-keep", dir.Keep, "Number of backups to keep in --backup-dir. Older ones are deleted when the new "+
		"one was verified.")
	client.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir.Keep < 1 {
			return fmt.Errorf("--backup-keep: must be at least 1, not %d", dir.Keep)
		}
		source, err := client.Source(cmd.Context())
		if err != nil {
			return err
		}
		saved, err := save(cmd.Context(), source, dir, args)
		if saved != nil {
			fmt.Fprintf(streams.Out, "Saved revision %d to %s: %d bytes, verified.\n", saved.Revision, saved.Path, saved.Bytes)
		}
		return err
	}
	return cmd
}

func save(ctx context.Context, source backup.Source, dir backup.Directory, args []string) (*backup.File, error) {
	if len(args) == 0 {
		saved, err := dir.Save(ctx, source)
		if err != nil {
			err = fmt.Errorf("--backup-dir: %w", err)
		}
		return saved, err
	}
	saved, err := backup.Save(ctx, source, args[0])
	if err != nil {
		err = fmt.Errorf("backing up the store: %w", err)
	}
	return saved, err
}
