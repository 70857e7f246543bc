// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usage is how commands show their usage: without the flags that all of them have, which would hide their own.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{if ne .Name "options"}}
Use "kubectl jobset options" for a list of the flags that all commands take.
{{end}}{{if .HasAvailableSubCommands}}Use "{{.CommandPath}} [command] --help" for more information about a command.
{{end}}`

// newOptions returns `kubectl jobset options`.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands take",
		Long:  "List the flags that all commands take: those of kubectl for the cluster, the user and the namespace, and some for the output.",
		Example: `  # The flags of all commands
  kubectl jobset options`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: options takes no arguments", args[0])
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "All commands take these flags:\n\n%s",
				strings.TrimRight(cmd.Root().PersistentFlags().FlagUsages(), " "))
			return err
		},
	}
}
