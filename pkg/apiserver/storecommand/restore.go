// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func newRestore(streams genericiooptions.IOStreams) *cobra.Command {
	client, dataDir, moveAside := options.NewStoreClient(), "", false
	cmd := &cobra.Command{
		Use:   "restore FILE --data-dir=DIR",
		Short: "Make the data of an embedded etcd of a backup",
		Long: "Make the data of an embedded etcd of a backup, while the server does not run. Nothing is deleted: data that exists must have\n" +
			"been moved away, or is with --move-existing. The revision is moved on, so that clients list again and none goes back in\n" +
			"time. The server refuses the restored store until it is accepted with \"store accept\", because it is older than it was.\n\n" +
			"For an external etcd, use \"etcdutl snapshot restore\" with --bump-revision=1000000000 and --mark-compacted.",
		Example: "  jobset-apiserver store restore /backups/jobset-apiserver-20260102T030405Z-4711.db \\\n" +
			"    --data-dir=/var/lib/jobset-apiserver/data --move-existing",
		Args: oneFile,
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "Directory of the embedded etcd, as that of the server.")
	cmd.Flags().BoolVar(&moveAside, "move-existing", false, "Move existing data to a directory beside it, which has the time in its name.")
	client.AddPrefixFlag(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if dataDir == "" {
			return errors.New("--data-dir: must be set to the directory of the server")
		}
		if err := restorable(args[0], client.Prefix()); err != nil {
			return err
		}
		aside := ""
		if moveAside {
			aside = "etcd.old-" + time.Now().UTC().Format("20060102T150405Z")
		}
		revision, err := etcd.Restore(args[0], dataDir, aside)
		if err != nil {
			return explainRestore(err, dataDir)
		}
		fmt.Fprintf(streams.Out, "Restored %s into %s. The store continues after revision %d.\n", args[0], dataDir, revision)
		if moved := filepath.Join(dataDir, aside); aside != "" && exists(moved) {
			fmt.Fprintf(streams.Out, "The data that was there is in %s now.\n", moved)
		}
		fmt.Fprint(streams.Out, "The server will refuse the store, because it is older than it was. Start the server, and then follow "+
			"\"jobset-apiserver store status\".\n")
		return nil
	}
	return cmd
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
func restorable(path, prefix string) (err error) {
	file, err := backup.Open(path)
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
	if err := file.Visit(prefix+"/", func(backup.Entry) error { count++; return nil }); err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("%s has nothing below %s: it is not a backup of this server, or --etcd-prefix must be that of the server", path, prefix)
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
