// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl is the kubectl plugin for JobSets, SequentialJobs and LeaderWorkerSets. Each command has a package of
// its own below this one; all of them reach the cluster through package cli and read it through package snapshot.
package kubectl

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/doctor"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/events"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/history"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/kind"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/list"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/logs"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/migrate"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/preview"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/readinessgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/report"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/timeline"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/top"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/tree"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/version"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// kinds are the kinds that the commands take.
var kinds = []kind.Kind{kind.JobSet, kind.SequentialJob, kind.LeaderWorkerSet, kind.DisaggregatedSet, kind.Run}

// explained are the kinds about whose groups errors say more.
var explained = append(slices.Clone(cli.Kinds), cli.Run)

// NewCommand returns `kubectl jobset` with all of its commands.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := cli.NewFactory(streams)
	cmd := &cobra.Command{
		Use:   "kubectl-jobset",
		Short: "Inspect and control JobSets, SequentialJobs and LeaderWorkerSets",
		Annotations: map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl jobset",
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; see --help", err) })
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	f.AddFlags(cmd.PersistentFlags())
	addVerbosity(cmd)
	targets := kind.Actions(kinds)
	cmd.AddCommand(
		action.NewRestart(f, targets), action.NewSuspend(f, targets), action.NewResume(f, targets),
		action.NewCancel(f, targets), action.NewRetry(f, targets), action.NewRollback(f, targets), action.NewPause(f, targets),
		list.NewCommand(f), tree.NewCommand(f, kind.Trees(kinds)), top.NewCommand(f, kind.Tops(kinds)),
		preview.NewCommand(f, kind.Previews(kinds)),
		timeline.NewCommand(f, kind.Timelines(kinds)), logs.NewCommand(f, kind.Logs(kinds)), why.NewCommand(f, kind.Whys(kinds)),
		history.NewCommand(f), report.NewCommand(f),
		events.NewCommand(f, kind.Events(kinds)), readinessgroup.NewCommand(f), doctor.NewCommand(f),
		migrate.NewCommand(f), version.NewCommand(f), newOptions(),
	)
	for _, sub := range cmd.Commands() {
		explainOutages(f, sub)
		complete.Flags(f, kind.Flags(kind.Of(sub.Name(), kinds)), sub)
	}
	cmd.SetUsageTemplate(usage)
	complete.Global(f, cmd)
	return cmd
}

// Explain returns the message of an error of a command.
func Explain(err error) string { return cli.Explain(err, explained...) }

// explainOutages makes the errors of a command say why our API does not answer, if that is what they are about.
func explainOutages(f *cli.Factory, cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if !outage.Concerns(err) {
			return err
		}
		clients, clientErr := f.Clients()
		if clientErr != nil {
			return err
		}
		return outage.Explain(cmd.Context(), clients, err, explained...)
	}
}

// addVerbosity adds -v, as kubectl has it: from 6 on, each request is logged. Without it, log lines of libraries are left out: a command
// reports its errors itself, in words for its user.
func addVerbosity(cmd *cobra.Command) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	verbosity := pflag.PFlagFromGoFlag(flags.Lookup("v"))
	verbosity.Usage = "Log level; 1 shows the errors of libraries, 6 and higher the requests."
	cmd.PersistentFlags().AddFlag(verbosity)
	cmd.PersistentPreRun = func(*cobra.Command, []string) {
		if !klog.V(1).Enabled() {
			klog.SetLogger(klog.Logger{})
		}
	}
}

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
