// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Recorded completes the first argument of a command with the names of objects of the namespace that have runs in the archive.
func Recorded(f *cli.Factory) cobra.CompletionFunc { return recorded(f.Clients) }

func recorded(of clients) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return suggest(cmd, of, word, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, c *cli.Clients) ([]string, error) {
			list, err := c.JobSets.ArchiveV1alpha1().Runs(c.Namespace).List(ctx, metav1.ListOptions{Limit: mostRuns})
			if err != nil {
				return nil, err
			}
			names := make([]string, 0, len(list.Items))
			for i := range list.Items {
				names = append(names, list.Items[i].Object.Name)
			}
			slices.Sort(names)
			return slices.Compact(names), nil
		})
	}
}
