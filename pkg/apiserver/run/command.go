// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run turns the options of the server into a running one: in which order its parts start, wait for each other, and end.
package run

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"

	// Makes --logging-format=json known.
	_ "k8s.io/component-base/logs/json/register"
	// Metrics of requests to the main API, and of the version.
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// NewCommand returns the command that runs the server until its context ends, with other commands below it.
func NewCommand(others ...*cobra.Command) (*cobra.Command, error) {
	o, err := options.NewOptions()
	if err != nil {
		return nil, err
	}
	cmd := &cobra.Command{
		Use:   options.ComponentName,
		Short: "Serves JobSets behind kube-apiserver, from a store of its own",
		Long: "jobset-apiserver is an aggregated Kubernetes API server. It serves the group jobset.x-k8s.io behind\n" +
			"kube-apiserver and stores its objects in an etcd of its own: one that runs in this process (--data-dir) or\n" +
			"a cluster elsewhere (--etcd-servers)." + list(others),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("argument %q is not known: %s takes flags only", args[0], options.ComponentName)
			}
			return nil
		},
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(o.Logs, o.Gate); err != nil {
				return flagerror.Wrap("logging-format", err, "correct the flags of logging")
			}
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return Run(cmd.Context(), o)
		},
	}
	sections := o.Flags()
	for _, name := range sections.Order {
		cmd.Flags().AddFlagSet(sections.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sections, columns)
	cmd.AddCommand(others...)
	return cmd, nil
}

// list returns a paragraph of help about the commands.
func list(commands []*cobra.Command) string {
	var lines strings.Builder
	for i, cmd := range commands {
		if i == 0 {
			lines.WriteString("\n\nCommands, each of which has a --help of its own:")
		}
		fmt.Fprintf(&lines, "\n  %s  %s", cmd.Name(), cmd.Short)
	}
	return lines.String()
}
