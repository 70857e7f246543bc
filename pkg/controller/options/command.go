// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"

	// Makes --logging-format=json known.
	_ "k8s.io/component-base/logs/json/register"
)

const componentName = "jobset-controller"

// NewCommand returns the command that runs the controller until its context ends.
func NewCommand() (*cobra.Command, error) {
	options, err := NewOptions()
	if err != nil {
		return nil, err
	}
	cmd := &cobra.Command{
		Use:   componentName,
		Short: "Turns JobSets into Jobs, Services and volume claims",
		Long: "jobset-controller watches the JobSets that jobset-apiserver serves behind kube-apiserver. It creates their\n" +
			"Jobs, headless Services and persistent volume claims in the main cluster and keeps their status current.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("argument %q is not known: %s takes flags only", args[0], componentName)
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(options.Logs, nil); err != nil {
				return err
			}
			if err := options.Complete(cmd.Context(), cmd.Flags()); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			return options.Run(cmd.Context())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; see --help", err) })
	sections := options.Flags()
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, componentName, logs.SkipLoggingConfigurationFlags())
	for _, name := range sections.Order {
		cmd.Flags().AddFlagSet(sections.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sections, columns)
	return cmd, nil
}
