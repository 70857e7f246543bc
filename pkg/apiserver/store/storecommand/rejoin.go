// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
)

// oldData returns the name of data that are moved away now.
func oldData() string { return "etcd.old-" + time.Now().UTC().Format("20060102T150405Z") }

func newRejoin(streams genericiooptions.IOStreams) *cobra.Command {
	dataDir := ""
	cmd := &cobra.Command{
		Use:   "rejoin --data-dir=DIR",
		Short: "Move the data of one of three embedded members away, so that it joins the others as a new member",
		Long: "Move the data of one of three embedded members away, while its server does not run. At its next start, the member joins the\n" +
			"others as a new one and gets their data. This is for a member whose data are of another cluster, because a backup was\n" +
			"restored on the first member. Nothing is deleted. A store with one member has no others: restore a backup instead.",
		Example: "  jobset-apiserver store rejoin --data-dir=/var/lib/jobset-apiserver/data",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if dataDir == "" {
				return errors.New("--data-dir: must be set to the directory of the server")
			}
			aside := oldData()
			switch err := etcd.MoveAside(dataDir, aside); {
			case errors.Is(err, etcd.ErrNoData):
				return fmt.Errorf("--data-dir: %w: a member without data joins the others when its server starts", err)
			case err != nil:
				return explainRestore(err, dataDir)
			}
			fmt.Fprintf(streams.Out, "The data of the member are in %s now. Start the server, and the member joins the others.\n",
				filepath.Join(dataDir, aside))
			return nil
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "Directory of the embedded etcd, as that of the server.")
	return cmd
}
