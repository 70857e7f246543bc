// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// help shows a command. The command of the server, above, has a function of its own for its many flags.
func help(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s\n\n", cmd.Long)
	writeUsage(out, cmd)
}

func usage(cmd *cobra.Command) error {
	writeUsage(cmd.OutOrStderr(), cmd)
	return nil
}

func writeUsage(out io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(out, "\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
		fmt.Fprintf(out, "\nUse \"%s COMMAND --help\" for more information about a command.\n", cmd.CommandPath())
		return
	}
	var own, cluster pflag.FlagSet
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Annotations[ofCluster]; ok {
			cluster.AddFlag(flag)
		} else {
			own.AddFlag(flag)
		}
	})
	fmt.Fprintf(out, "\nFlags:\n%s", own.FlagUsages())
	if cluster.HasAvailableFlags() {
		fmt.Fprintf(out, "\nFlags for the main cluster, as those of kubectl:\n%s", cluster.FlagUsages())
	}
}
