// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
)

// standard is the argument for the standard input or output.
const standard = "-"

// backingUp is `store backup`.
type backingUp struct {
	streams genericiooptions.IOStreams
	client  *storeClient
	dir     backup.Directory
	s3      bucket.Options
	stopped bool
}

func newBackup(streams genericiooptions.IOStreams) *cobra.Command {
	b := &backingUp{streams: streams, client: newStoreClient(), dir: backup.Directory{Keep: options.DefaultBackupKeep, Now: time.Now}}
	cmd := &cobra.Command{
		Use:   "backup FILE | - | s3://BUCKET/PREFIX/ | --backup-dir=DIR",
		Short: "Back up the store of a server that runs",
		Long: "Save a snapshot of the store to a new file, to the standard output, to a bucket, or to a directory. Buckets and directories\n" +
			"keep the newest backups. A snapshot is verified before it gets its name; of one on the standard output, the hash is checked,\n" +
			"and it is not a backup if the exit code is not 0. A snapshot for a bucket is first saved in the directory for temporary files\n" +
			"(TMPDIR). For an embedded etcd, run the command where the server runs and as the same user; for an external one, anywhere.",
		Example: "  # In the pod of a server with the embedded etcd\n" +
			"  jobset-apiserver store backup --data-dir=/var/lib/jobset-apiserver/data --backup-dir=/backups\n\n" +
			"  # From such a pod to this machine\n" +
			"  kubectl -n jobset-system exec jobset-apiserver-0 -- \\\n" +
			"    jobset-apiserver store backup - --data-dir=/var/lib/jobset-apiserver/data > jobset.db\n\n" +
			"  # An external etcd\n" +
			"  jobset-apiserver store backup jobset.db --etcd-servers=https://etcd:2379 --etcd-cafile=ca.crt --etcd-certfile=tls.crt " +
			"--etcd-keyfile=tls.key\n\n" +
			"  # An external etcd to a bucket\n" +
			"  jobset-apiserver store backup s3://backups/jobset/ --s3-endpoint=https://minio:9000 --s3-credentials-dir=/etc/s3 \\\n" +
			"    --etcd-servers=https://etcd:2379",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) == (b.dir.Path == "") || len(args) > 1 {
				return errors.New("either one FILE, - or s3://BUCKET/PREFIX/, or --backup-dir must be given: the file must not exist, the bucket " +
					"and the directory keep the newest backups")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&b.dir.Path, "backup-dir", "", "Directory that keeps the newest backups, as that of the server.")
	cmd.Flags().IntVar(&b.dir.Keep, "backup-keep", b.dir.Keep, "Number of backups to keep in --backup-dir or in the bucket. Older ones are "+
		"deleted when the new one was verified. 0 deletes none from a bucket, for one with a lifecycle rule.")
	cmd.Flags().BoolVar(&b.stopped, "stopped", false, "Save what --data-dir has to FILE while the server does not run, as when too few "+
		"members of a cluster are left. If the server was killed, its last writes may be missing.")
	b.client.AddFlags(cmd.Flags())
	b.s3.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			args = []string{""}
		}
		return b.run(cmd.Context(), args[0])
	}
	return cmd
}

func (b *backingUp) run(ctx context.Context, target string) error {
	least := 1
	if bucket.IsPlace(target) {
		least = 0
	}
	if b.dir.Keep < least {
		return fmt.Errorf("--backup-keep: must be at least %d, not %d", least, b.dir.Keep)
	}
	to, err := openTarget(ctx, b.s3, target)
	if err != nil {
		return err
	}
	if b.stopped {
		return b.copy(target, to != nil)
	}
	source, err := b.client.Source(ctx)
	if err != nil {
		return err
	}
	switch {
	case to != nil:
		return b.upload(ctx, source, to)
	case target == standard:
		return b.stream(ctx, source)
	}
	saved, err := b.save(ctx, source, target)
	if saved != nil {
		fmt.Fprintf(b.streams.Out, "Saved revision %d to %s: %d bytes, verified.\n", saved.Revision, saved.Path, saved.Bytes)
	}
	return err
}

// openTarget opens the bucket that a target names; nil if it does not name one.
func openTarget(ctx context.Context, s3 bucket.Options, target string) (*bucket.Bucket, error) {
	if !bucket.IsPlace(target) {
		return nil, unusedBucketFlags(s3)
	}
	place, err := bucket.ParseDirectory(target)
	if err != nil {
		return nil, err
	}
	return s3.Open(ctx, place)
}

func unusedBucketFlags(s3 bucket.Options) error {
	if s3.Set() {
		return errors.New("the flags that begin with --s3- need the address of a bucket, such as s3://BUCKET/PREFIX/: give it, or remove them")
	}
	return nil
}

// copy saves what a directory has that no server uses.
func (b *backingUp) copy(file string, place bool) (err error) {
	if place || file == "" || file == standard || b.client.DataDir == "" {
		return errors.New("--stopped: needs the name of a FILE and --data-dir")
	}
	unused, err := etcd.Open(etcd.Config{DataDir: b.client.DataDir})
	if err != nil {
		return explainRestore(err, b.client.DataDir)
	}
	defer unused.Close()
	saved, err := backup.Copy(etcd.Database(b.client.DataDir), file)
	if err != nil {
		return fmt.Errorf("backing up the store: %w", err)
	}
	fmt.Fprintf(b.streams.Out, "Saved revision %d to %s: %d bytes, verified.\n", saved.Revision, saved.Path, saved.Bytes)
	return nil
}

func (b *backingUp) save(ctx context.Context, source backup.Source, file string) (*backup.File, error) {
	if file == "" {
		saved, err := b.dir.Save(ctx, source)
		if err != nil {
			err = fmt.Errorf("--backup-dir: %w", err)
		}
		return saved, err
	}
	saved, err := backup.Save(ctx, source, file)
	if err != nil {
		err = fmt.Errorf("backing up the store: %w", err)
	}
	return saved, err
}

func (b *backingUp) stream(ctx context.Context, source backup.Source) error {
	saved, err := backup.Stream(ctx, source, b.streams.Out)
	if err != nil {
		return fmt.Errorf("backing up the store: what was written is not a backup: %w", err)
	}
	fmt.Fprintf(b.streams.ErrOut, "Wrote revision %d or later to the standard output: %d bytes, with their hash.\n", saved.Revision,
		saved.Bytes)
	return nil
}

func (b *backingUp) upload(ctx context.Context, source backup.Source, to *bucket.Bucket) (err error) {
	at := b.dir.Now()
	dir, err := os.MkdirTemp("", "jobset-apiserver-")
	if err != nil {
		return explainSpool(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	saved, err := backup.Save(ctx, source, filepath.Join(dir, "snapshot.db"))
	if err != nil {
		return explainSpool(fmt.Errorf("backing up the store: %w", err))
	}
	name := backup.Name(at, saved.Revision)
	if err := to.Upload(ctx, saved.Path, name); err != nil {
		return err
	}
	fmt.Fprintf(b.streams.Out, "Saved revision %d to %s%s: %d bytes, verified.\n", saved.Revision, to.Place, name, saved.Bytes)
	return to.Prune(ctx, name, b.dir.Keep)
}

// explainSpool says what to do if the directory for temporary files is full.
func explainSpool(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: set TMPDIR to a directory with enough space", err)
	}
	return err
}
