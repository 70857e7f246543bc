// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl is the kubectl plugin for JobSets. Each command has a package of its own below this one; all of them
// reach the cluster through package cli and read it through package snapshot.
package kubectl

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// NewCommand returns `kubectl jobset` with all of its commands.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := cli.NewFactory(streams)
	cmd := &cobra.Command{
		Use:   "kubectl-jobset",
		Short: "Look into JobSets, and act on them",
		Annotations: map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl jobset",
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; see --help", err) })
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	f.Flags.AddFlags(cmd.PersistentFlags())
	for _, add := range []func(*cli.Factory) *cobra.Command{
		action.NewRestart, action.NewSuspend, action.NewResume, action.NewCancel, action.NewRetry,
	} {
		cmd.AddCommand(add(f))
	}
	return cmd
}
