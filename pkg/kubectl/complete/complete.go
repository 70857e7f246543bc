// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package complete offers names of the cluster to the shell: of JobSets, of the replicatedJobs of a set, of the indices of
// their Jobs. A cluster that does not answer soon offers nothing.
package complete

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// clusterTimeout bounds how long a shell waits for the cluster.
const clusterTimeout = 3 * time.Second

// ReplicatedJobFlag is the flag whose value JobIndices looks at.
const ReplicatedJobFlag = "replicated-job"

// source is where the words come from. Tests have one of their own.
type source interface {
	names(ctx context.Context, kind cli.Kind) ([]string, error)
	set(ctx context.Context, name string) (*jobsetv1alpha2.JobSet, error)
}

// Names completes the first argument of a command with the names of the objects in the namespace: those of the kind before the
// slash, or else of the first kind.
func Names[T any](f *cli.Factory, kinds []cli.For[T]) cobra.CompletionFunc {
	return names(cluster{f}, kinds)
}

// ReplicatedJobs completes a flag with the replicatedJobs of the JobSet that the first argument names.
func ReplicatedJobs(f *cli.Factory) cobra.CompletionFunc { return replicatedJobs(cluster{f}) }

// JobIndices completes a flag with the indices of the Jobs of the replicatedJob that --replicated-job names, or of the only
// one that the JobSet has.
func JobIndices(f *cli.Factory) cobra.CompletionFunc { return jobIndices(cluster{f}) }

func names[T any](from source, kinds []cli.For[T]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		prefix, kind := "", kinds[0].Kind
		if resource, _, slash := strings.Cut(word, "/"); slash {
			at := slices.IndexFunc(kinds, func(k cli.For[T]) bool { return k.Accepts(resource) })
			if at < 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			prefix, kind = resource+"/", kinds[at].Kind
		}
		ctx, stop := limit(cmd)
		defer stop()
		names, err := from.names(ctx, kind)
		if err != nil {
			return failed(err)
		}
		for i := range names {
			names[i] = prefix + names[i]
		}
		return matching(names, word), cobra.ShellCompDirectiveNoFileComp
	}
}

func replicatedJobs(from source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		set, err := named(cmd, from, args)
		if err != nil {
			return failed(err)
		}
		var names []string
		for i := range set.Spec.ReplicatedJobs {
			names = append(names, set.Spec.ReplicatedJobs[i].Name)
		}
		return matching(names, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func jobIndices(from source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		set, err := named(cmd, from, args)
		if err != nil {
			return failed(err)
		}
		wanted := ""
		if flag := cmd.Flags().Lookup(ReplicatedJobFlag); flag != nil {
			wanted = flag.Value.String()
		}
		var indices []string
		for i := range set.Spec.ReplicatedJobs {
			group := &set.Spec.ReplicatedJobs[i]
			if group.Name != wanted && (wanted != "" || len(set.Spec.ReplicatedJobs) > 1) {
				continue
			}
			for index := range int(ptr.Deref(group.Replicas, 1)) {
				indices = append(indices, strconv.Itoa(index))
			}
		}
		return matching(indices, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func named(cmd *cobra.Command, from source, args []string) (*jobsetv1alpha2.JobSet, error) {
	_, name, err := cli.Find([]cli.For[struct{}]{{Kind: cli.JobSet}}, args)
	if err != nil {
		return nil, err
	}
	ctx, stop := limit(cmd)
	defer stop()
	return from.set(ctx, name)
}

func limit(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), clusterTimeout)
}

func matching(words []string, begin string) []cobra.Completion {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, begin) })
}

// failed offers nothing. The reason goes to the log of completions, as a terminal has no place for it.
func failed(err error) ([]cobra.Completion, cobra.ShellCompDirective) {
	cobra.CompErrorln(err.Error())
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// cluster is the source behind the flags of kubectl.
type cluster struct{ f *cli.Factory }

// names asks for the metadata alone: sets are large, and a shell waits.
func (c cluster) names(ctx context.Context, kind cli.Kind) ([]string, error) {
	clients, err := c.f.Clients()
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(clients.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata: %w", err)
	}
	list, err := objects.Resource(kind.Resource()).Namespace(clients.Namespace).
		List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Names[1], err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

func (c cluster) set(ctx context.Context, name string) (*jobsetv1alpha2.JobSet, error) {
	clients, err := c.f.Clients()
	if err != nil {
		return nil, err
	}
	return clients.JobSets.JobsetV1alpha2().JobSets(clients.Namespace).Get(ctx, name, metav1.GetOptions{})
}
