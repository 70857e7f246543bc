// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// NewCommand returns `kubectl jobset preview`.
func NewCommand(f *cli.Factory, kinds []cli.For[Previewer]) *cobra.Command {
	var output cli.Output
	files := genericclioptions.FileNameFlags{
		Usage:     "A file, directory or URL with the JobSets; - for the standard input.",
		Filenames: &[]string{}, Kustomize: ptr.To(""), Recursive: ptr.To(false),
	}
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Show what a JobSet would create, and whether the cluster would accept it",
		Long: `Show what the JobSets of a manifest would create, without creating anything: the names of all Jobs, pods, Services and volume
claims; whether the cluster would accept them, by server-side dry runs of the set, and of one Job and one pod for each
replicatedJob; names that are taken; and whether the quotas of the namespace are large enough for the whole set.

The exit code is 1 if any of it would be refused. What you have no permission to check is shown as unknown.`,
		Example: `  # Preview a manifest
  kubectl jobset preview -f train.yaml

  # Preview what a kustomization makes
  kubectl jobset preview -k overlays/production

  # Stop a pipeline before anything is created that would not run
  generate-train | kubectl jobset preview -f - -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), f, kinds, files.ToOptions(), &output, args)
		},
	}
	files.AddFlags(cmd.Flags())
	output.AddFlags(cmd)
	return cmd
}

func run(ctx context.Context, f *cli.Factory, kinds []cli.For[Previewer], files resource.FilenameOptions, output *cli.Output, args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("%s: preview takes manifests, as -f FILE, and no names", args[0])
	case len(files.Filenames) == 0 && files.Kustomize == "":
		return fmt.Errorf("--filename: give a file with JobSets, or - for the standard input")
	}
	if err := output.Validate(); err != nil {
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
	report, err := preview(ctx, cluster, objects)
	if err != nil {
		return err
	}
	if output.ForHumans() {
		terminal := f.Terminal()
		err = terminal.Lines(f.Out, render(report, others, terminal)...)
	} else {
		err = output.PrintReport(f.Out, "Preview", report)
	}
	if err == nil && report.Refused {
		err = cli.ErrSilent
	}
	return err
}
