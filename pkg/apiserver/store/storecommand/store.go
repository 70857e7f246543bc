// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storecommand is `jobset-apiserver store`: the commands with which an administrator looks at the store of the server, backs
// it up, and decides what happens when a server refuses it. Each command has a file of its own. Those that reach the main
// cluster do so as kubectl does, with the flags and the kubeconfig of the administrator; none reaches the server.
package storecommand

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// ExitCode makes the program end with the code without a further message: the command has printed everything.
type ExitCode int

// Error implements error.
func (ExitCode) Error() string { return "failed" }

// NewCommand returns `store` with all of its commands.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(streams, connect)
}

func newCommand(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store COMMAND",
		Short: "Inspect the store, back it up, and decide about a store that a server refuses",
		Long: "Inspect the store of jobset-apiserver, back it up, and decide about a store that a server refuses.\n" +
			"A server refuses a store that is empty, foreign, older than it was, or of another cluster: the garbage\n" +
			"collector would delete the Jobs of the owners that such a store does not have.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("argument %q is not a command of store; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newStatus(streams, connect), newAccept(streams, connect), newReleaseOrphans(streams, connect),
		newBackup(streams), newVerify(streams), newRestore(streams), newRejoin(streams), newMigrate(streams, connect),
		newImport(streams, connect), newExport(streams), newRemove(streams, connect),
	)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetUsageFunc(usage)
	cmd.SetHelpFunc(help)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	return cmd
}

// noArguments refuses arguments in the words of this program.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %q is not known: %s takes flags only", args[0], cmd.CommandPath())
	}
	return nil
}

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
