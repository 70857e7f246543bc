// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"

	// Makes --logging-format=json known.
	_ "k8s.io/component-base/logs/json/register"
	// Metrics of requests to the main API, and of the version.
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// NewCommand returns the command that runs the server until its context ends, with other commands below it.
func NewCommand(others ...*cobra.Command) (*cobra.Command, error) {
	options, err := NewOptions()
	if err != nil {
		return nil, err
	}
	cmd := &cobra.Command{
		Use:   componentName,
		Short: "Serves JobSets behind kube-apiserver, from a store of its own",
		Long: "jobset-apiserver is an aggregated Kubernetes API server. It serves the group jobset.x-k8s.io behind\n" +
			"kube-apiserver and stores its objects in an etcd of its own: one that runs in this process (--data-dir) or\n" +
			"a cluster elsewhere (--etcd-servers)." + list(others),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("argument %q is not known: %s takes flags only", args[0], componentName)
			}
			return nil
		},
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(options.Logs, options.gate); err != nil {
				return wrapFlagError("logging-format", err, "correct the flags of logging")
			}
			if err := options.Complete(); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			return options.Run(cmd.Context())
		},
	}
	sections := options.Flags()
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

// Flags returns all flags in sections, for a readable help.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	o.addServingFlags(sections.FlagSet("serving"))
	o.Storage.AddFlags(sections.FlagSet("storage"), o.Recommended.Etcd)
	o.Recommended.CoreAPI.AddFlags(sections.FlagSet("main cluster"))
	o.Recommended.EgressSelector.AddFlags(sections.FlagSet("main cluster"))
	o.Recommended.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sections.FlagSet("authorization"))
	o.addRuntimeConfigFlag(sections.FlagSet("API groups"))
	o.Recommended.Admission.AddFlags(sections.FlagSet("admission"))
	o.Recommended.Audit.AddFlags(sections.FlagSet("auditing"))
	o.addLimitFlags(sections.FlagSet("limits"))
	o.Recommended.Features.AddFlags(sections.FlagSet("features"))
	o.gate.AddFlag(sections.FlagSet("features"))
	o.Recommended.Traces.AddFlags(sections.FlagSet("traces"))
	logsapi.AddFlags(o.Logs, sections.FlagSet("logs"))
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, componentName, logs.SkipLoggingConfigurationFlags())
	return sections
}
