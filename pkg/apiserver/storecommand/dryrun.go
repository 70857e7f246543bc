// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dryRun is the flag --dry-run with the values of kubectl.
type dryRun struct{ value string }

func (d *dryRun) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.value, "dry-run", "none", `Must be "none", "server", or "client". If client strategy, only print what would `+
		`be changed. If server strategy, submit the requests without persisting anything.`)
}

func (d *dryRun) validate() error {
	switch d.value {
	case "none", "server", "client":
		return nil
	}
	return fmt.Errorf("--dry-run: must be none, server or client, not %q", d.value)
}

// client means that nothing is sent.
func (d *dryRun) client() bool { return d.value == "client" }

// options are for requests.
func (d *dryRun) options() []string {
	if d.value == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// suffix is what follows each line of the output, as in kubectl.
func (d *dryRun) suffix() string {
	switch d.value {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
