// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// sets is a source that has these JobSets. Without any it is a cluster that does not answer.
type sets []*jobsetv1alpha2.JobSet

func (s sets) names(context.Context, cli.Kind) (names []string, err error) {
	if len(s) == 0 {
		return nil, errors.New("no answer")
	}
	for _, js := range s {
		names = append(names, js.Name)
	}
	return names, nil
}

func (s sets) set(_ context.Context, name string) (*jobsetv1alpha2.JobSet, error) {
	for _, js := range s {
		if js.Name == name {
			return js, nil
		}
	}
	return nil, errors.New("not found")
}

func jobSetNames(from source) cobra.CompletionFunc {
	return names(from, []cli.For[bool]{{Kind: cli.JobSet}})
}

func TestCompletions(t *testing.T) {
	from := sets{
		builders.JobSet("train-a", builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 3, 1)),
		builders.JobSet("train-b", builders.WithJobs("workers", 11, 1)),
		builders.JobSet("other"),
	}
	const unordered = cobra.ShellCompDirectiveNoFileComp
	const ordered = unordered | cobra.ShellCompDirectiveKeepOrder
	for name, tc := range map[string]struct {
		of            func(source) cobra.CompletionFunc
		from          sets
		args          []string
		replicatedJob string
		word          string
		want          []cobra.Completion
		wantDirective cobra.ShellCompDirective
	}{
		"names that begin like the word":                {of: jobSetNames, from: from, word: "tr", want: []cobra.Completion{"train-a", "train-b"}, wantDirective: unordered},
		"names keep the resource before them":           {of: jobSetNames, from: from, word: "js/o", want: []cobra.Completion{"js/other"}, wantDirective: unordered},
		"another resource has no names":                 {of: jobSetNames, from: from, word: "job/", wantDirective: unordered},
		"one name is enough":                            {of: jobSetNames, from: from, args: []string{"other"}, wantDirective: unordered},
		"a cluster that does not answer offers nothing": {of: jobSetNames, wantDirective: unordered},
		"replicatedJobs in the order of the set":        {of: replicatedJobs, from: from, args: []string{"jobset/train-a"}, want: []cobra.Completion{"leader", "workers"}, wantDirective: ordered},
		"replicatedJobs that begin like the word":       {of: replicatedJobs, from: from, args: []string{"train-a"}, word: "w", want: []cobra.Completion{"workers"}, wantDirective: ordered},
		"no replicatedJobs before the name is given":    {of: replicatedJobs, from: from, wantDirective: unordered},
		"no replicatedJobs of an unknown set":           {of: replicatedJobs, from: from, args: []string{"nobody"}, wantDirective: unordered},
		"indices of the replicatedJob of the flag":      {of: jobIndices, from: from, args: []string{"train-a"}, replicatedJob: "workers", want: []cobra.Completion{"0", "1", "2"}, wantDirective: ordered},
		"indices of the only replicatedJob":             {of: jobIndices, from: from, args: []string{"train-b"}, word: "1", want: []cobra.Completion{"1", "10"}, wantDirective: ordered},
		"no indices when the replicatedJob is open":     {of: jobIndices, from: from, args: []string{"train-a"}, wantDirective: ordered},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			cmd.Flags().String(ReplicatedJobFlag, tc.replicatedJob, "")
			got, directive := tc.of(tc.from)(cmd, tc.args, tc.word)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
			if directive != tc.wantDirective {
				t.Errorf("directive: got %d, want %d", directive, tc.wantDirective)
			}
		})
	}
}
