// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// restoring is `store restore`.
type restoring struct {
	streams genericiooptions.IOStreams
	client  *storeClient
	s3      bucket.Options
	dataDir string
	move    bool
}

func newRestore(streams genericiooptions.IOStreams) *cobra.Command {
	r := &restoring{streams: streams, client: newStoreClient()}
	cmd := &cobra.Command{
		Use:   "restore FILE | DIR/ | - | s3://BUCKET/PREFIX/[NAME] --data-dir=DIR",
		Short: "Make the data of an embedded etcd of a backup",
		Long: "Make the data of an embedded etcd of a backup, while the server does not run. The backup is a file, the standard input, an\n" +
			"object in a bucket, or, if the argument ends with a slash, the newest one there. Nothing is deleted: data that exists must have\n" +
			"been moved away, or is with --move-existing. The revision is moved on, so that clients list again and none goes back in\n" +
			"time. The server refuses the restored store until it is accepted with \"store accept\", because it is older than it was.\n\n" +
			"For an external etcd, use \"etcdutl snapshot restore\" with --bump-revision=1000000000 and --mark-compacted.",
		Example: "  jobset-apiserver store restore /backups/jobset-apiserver-20260102T030405Z-4711.db \\\n" +
			"    --data-dir=/var/lib/jobset-apiserver/data --move-existing\n\n" +
			"  # The newest backup in a bucket\n" +
			"  jobset-apiserver store restore s3://backups/jobset/ --s3-endpoint=https://minio:9000 --s3-credentials-dir=/etc/s3 \\\n" +
			"    --data-dir=/var/lib/jobset-apiserver/data",
		Args: oneFile,
	}
	cmd.Flags().StringVar(&r.dataDir, "data-dir", "", "Directory of the embedded etcd, as that of the server.")
	cmd.Flags().BoolVar(&r.move, "move-existing", false, "Move existing data to a directory beside it, which has the time in its name.")
	r.client.AddPrefixFlag(cmd.Flags())
	r.s3.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) }
	return cmd
}

func (r *restoring) run(ctx context.Context, from string) (err error) {
	if r.dataDir == "" {
		return errors.New("--data-dir: must be set to the directory of the server")
	}
	aside := ""
	if r.move {
		aside = oldData()
	}
	if from == standard || bucket.IsPlace(from) {
		// Nothing is copied for a server that runs, into its directory least of all.
		if err := etcd.CheckRestorable(r.dataDir, aside); err != nil {
			return explainRestore(err, r.dataDir)
		}
	}
	file, err := fetch(ctx, from, r.s3, r.streams.In, r.dataDir)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("--data-dir: %w: it needs space for the backup and for the data that is made of it", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.remove()) }()
	if err := restorable(file, r.client.Prefix()); err != nil {
		return err
	}
	revision, err := etcd.Restore(file.path, r.dataDir, aside)
	if err != nil {
		return explainRestore(err, r.dataDir)
	}
	fmt.Fprintf(r.streams.Out, "Restored %s into %s. The store continues after revision %d.\n", file.name, r.dataDir, revision)
	if moved := filepath.Join(r.dataDir, aside); aside != "" && exists(moved) {
		fmt.Fprintf(r.streams.Out, "The data that was there is in %s now.\n", moved)
	}
	fmt.Fprint(r.streams.Out, "The server will refuse the store, because it is older than it was. Start the server, and then follow "+
		"\"jobset-apiserver store status\".\n")
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one FILE must be given, not %d; see %s --help", len(args), cmd.CommandPath())
	}
	return nil
}

// restorable refuses what a server could not serve.
func restorable(from *fetched, prefix string) (err error) {
	file, err := from.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	found, err := file.Witness(prefix)
	if err != nil {
		return err
	}
	if found != nil {
		if found.Format > witness.Format {
			return newerFormat(found)
		}
		return nil
	}
	count := 0
	if err := file.ForEach(prefix+"/", func(backup.Entry) error { count++; return nil }); err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("%s has nothing below %s: it is not a backup of this server, or --etcd-prefix must be that of the server", from.name,
			prefix)
	}
	return nil
}

func newerFormat(found *witness.Found) error {
	return fmt.Errorf("version %s has written the store in format %d, but this version reads formats up to %d: use version %s or newer",
		found.Version, found.Format, witness.Format, found.Version)
}

func explainRestore(err error, dataDir string) error {
	switch {
	case errors.Is(err, etcd.ErrInUse):
		return fmt.Errorf("--data-dir: %w: stop the server first", err)
	case errors.Is(err, etcd.ErrNotEmpty):
		return fmt.Errorf("--data-dir: %w: set --move-existing to move it away, or use another directory", err)
	}
	return fmt.Errorf("--data-dir: %w", err)
}
