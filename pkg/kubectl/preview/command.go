// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// formatDiff is the format of a unified diff.
const formatDiff = "diff"

// changesCode is the exit code for a manifest that would create or change something, if it is asked for.
const changesCode cli.ExitCode = 2

type options struct {
	files    genericclioptions.FileNameFlags
	output   cli.Output
	manager  string
	detailed bool
}

// NewCommand returns `kubectl jobset preview`.
func NewCommand(f *cli.Factory, kinds []cli.For[Previewer]) *cobra.Command {
	o := &options{files: genericclioptions.FileNameFlags{
		Usage:     "A file, directory or URL with the JobSets; - for the standard input.",
		Filenames: &[]string{}, Kustomize: ptr.To(""), Recursive: ptr.To(false),
	}}
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Show what a manifest would create or change, and whether the cluster would accept it",
		Long: `Show what the JobSets and SequentialJobs of a manifest would create or change, without creating or changing anything.

For a new set: the names of all Jobs, pods, Services and volume claims; whether the cluster would accept them, by
server-side dry runs of the set, and of one Job and one pod for each replicatedJob; names that are taken; and whether
the quotas of the namespace are large enough for the whole set. Other objects of the manifest, such as service accounts,
claims and quotas, are taken into account.

For a new SequentialJob: the same for the child of each step, in the order in which they are created.

For a set that exists: each field that "kubectl apply" would change, what the change does (scale, suspend, resume, take
effect after the next restart), and which fields the server does not let you change. -o diff prints a unified diff;
KUBECTL_EXTERNAL_DIFF names another program for it, as for "kubectl diff".

The exit code is 1 if any of it would be refused, and for errors. Otherwise it is 0; with --detailed-exit-code it is 2 if
something would be created or changed. What you have no permission to check is shown as unknown.`,
		Example: `  # Preview a manifest
  kubectl jobset preview -f train.yaml

  # Show what would change in the cluster, as a diff
  kubectl jobset preview -f train.yaml -o diff

  # Preview what a kustomization makes
  kubectl jobset preview -k overlays/production

  # Apply a manifest only if the cluster would accept all of it
  kubectl jobset preview -f train.yaml && kubectl apply -f train.yaml

  # Stop a pipeline if the cluster differs from the manifests
  kubectl jobset preview -f manifests/ --detailed-exit-code`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), f, kinds, args)
		},
	}
	o.files.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.manager, "field-manager", applyManager,
		"Field manager of server-side applies, whose fields are removed if the manifest no longer has them.")
	cmd.Flags().BoolVar(&o.detailed, "detailed-exit-code", false,
		"Exit with code 2 if something would be created or changed, and with code 0 only if nothing would.")
	o.output.AddFlags(cmd, formatDiff)
	_ = cmd.RegisterFlagCompletionFunc("field-manager", cobra.NoFileCompletions)
	return cmd
}

func (o *options) validate(args []string, files resource.FilenameOptions) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("%s: preview takes manifests, as -f FILE, and no names", args[0])
	case len(files.Filenames) == 0 && files.Kustomize == "":
		return fmt.Errorf("--filename: give a file with JobSets, or - for the standard input")
	case o.manager == "":
		return fmt.Errorf("--field-manager: must be the name of a field manager, not empty")
	}
	return o.output.Validate()
}

func (o *options) run(ctx context.Context, f *cli.Factory, kinds []cli.For[Previewer], args []string) error {
	files := o.files.ToOptions()
	if err := o.validate(args, files); err != nil {
		return err
	}
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	objects, others, err := readObjects(kinds, files, f.In, clients.Namespace, ptr.Deref(f.Flags.Namespace, "") != "")
	if err != nil {
		return err
	}
	cluster, err := newLive(clients)
	if err != nil {
		return err
	}
	report, err := preview(ctx, &Session{cluster: cluster, manifest: others, manager: o.manager}, objects)
	if err != nil {
		return err
	}
	if err := o.print(ctx, f, report, others); err != nil {
		return err
	}
	return o.exitCode(report)
}

func (o *options) print(ctx context.Context, f *cli.Factory, report *Report, others manifest) error {
	terminal := f.Terminal()
	switch {
	case o.output.Is(formatDiff):
		if err := printDiff(ctx, f.IOStreams, report, terminal); err != nil || !report.Refused {
			return err
		}
		// A diff does not show what is refused.
		return write(f.ErrOut, render(report, nil, cli.TerminalOf(f.ErrOut)))
	case o.output.ForHumans():
		return write(f.Out, render(report, others, terminal))
	}
	return o.output.PrintReport(f.Out, "Preview", report)
}

// write writes lines as they are: those that are cut are tables, and fields stay whole.
func write(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (o *options) exitCode(report *Report) error {
	switch {
	case report.Refused:
		return cli.ErrSilent
	case o.detailed && report.Changed:
		return changesCode
	}
	return nil
}
