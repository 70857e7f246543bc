// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package complete suggests words of the cluster to the shell: names of objects and namespaces, and values of flags
// that fit an object. A cluster that does not answer soon suggests nothing.
package complete

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// clusterTimeout bounds how long a shell waits for the cluster.
const clusterTimeout = 3 * time.Second

// Values are functions that read an object of a kind and return the values of a flag that fit it, in their order, by the name of
// the flag. Other flags may narrow them.
type Values map[string]func(ctx context.Context, c *cli.Clients, name string, flags *pflag.FlagSet) ([]string, error)

// clients returns the clients of the cluster.
type clients func() (*cli.Clients, error)

// Names completes the first argument of a command with the names of the objects in the namespace: those of the kind before the
// slash, or else of the first kind.
func Names[T any](f *cli.Factory, kinds []cli.For[T]) cobra.CompletionFunc {
	return names(f.Clients, kinds)
}

// Flags completes the flags of a command with values that fit the object of the first argument. It does so for the flags that a kind has
// values for. The kinds are the kinds that the command takes.
func Flags(f *cli.Factory, kinds []cli.For[Values], cmd *cobra.Command) {
	for _, kind := range kinds {
		for flag := range kind.Do {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, values(f.Clients, kinds, flag)) // one function is for all kinds
			}
		}
	}
}

// fileFlags are the flags whose values are files, which the shell completes.
var fileFlags = sets.New("filename", "kustomize", "file", "kubeconfig", "template", "cache-dir", "certificate-authority",
	"client-certificate", "client-key")

// Global completes the flags that all commands have, and lets the shell suggest no files for values that are none. The
// other flags must have their completions already.
func Global(f *cli.Factory, root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", namespaces(f.Clients))
	for _, cmd := range root.Commands() {
		if cmd.Flags().Lookup("controller-namespace") != nil {
			_ = cmd.RegisterFlagCompletionFunc("controller-namespace", namespaces(f.Clients))
		}
	}
	for name, of := range map[string]func(*clientcmdapi.Config) []string{
		"context": func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) },
		"cluster": func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) },
		"user":    func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) },
	} {
		_ = root.RegisterFlagCompletionFunc(name, configured(f, of))
	}
	for _, cmd := range append(root.Commands(), root) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(flag *pflag.Flag) {
				if _, has := cmd.GetFlagCompletionFunc(flag.Name); !has && flag.NoOptDefVal == "" && !fileFlags.Has(flag.Name) {
					_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.NoFileCompletions)
				}
			})
		}
	}
}

// configured completes a flag with names of the kubeconfig.
func configured(f *cli.Factory, of func(*clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := of(&config)
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) }), cobra.ShellCompDirectiveNoFileComp
	}
}

func names[T any](of clients, kinds []cli.For[T]) cobra.CompletionFunc {
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
		return suggest(cmd, of, word, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, c *cli.Clients) ([]string, error) {
			names, err := list(ctx, c.Metadata.Resource(kind.Resource()).Namespace(c.Namespace), optionsOf(kind))
			for i := range names {
				names[i] = prefix + names[i]
			}
			return names, err
		})
	}
}

func values(of clients, kinds []cli.For[Values], flag string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		arg, err := cli.Parse(kinds, args)
		if kind, given := arg.Given(); err != nil || given && kind.Do[flag] == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ordered := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		return suggest(cmd, of, word, ordered, func(ctx context.Context, c *cli.Clients) ([]string, error) {
			kind, err := cli.FindToChange(ctx, c, arg)
			if err != nil || kind.Do[flag] == nil {
				return nil, err
			}
			return kind.Do[flag](ctx, c, arg.Name, cmd.Flags())
		})
	}
}

func namespaces(of clients) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return suggest(cmd, of, word, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, c *cli.Clients) ([]string, error) {
			return list(ctx, c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), cached)
		})
	}
}

// cached lists what the server has in its cache.
var cached = metav1.ListOptions{ResourceVersion: "0"}

// mostRuns is how many runs are suggested: those that ended last. The archive may have a million.
const mostRuns = 500

// optionsOf is how the objects of a kind are listed.
func optionsOf(kind cli.Kind) metav1.ListOptions {
	if kind.Title == cli.Run.Title {
		return metav1.ListOptions{Limit: mostRuns}
	}
	return cached
}

// list returns names. It asks for the metadata alone: objects are large, and a shell waits.
func list(ctx context.Context, resource metadata.ResourceInterface, options metav1.ListOptions) ([]string, error) {
	list, err := resource.List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listing names: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// suggest suggests the words of the cluster that begin like the word. The reason for none goes to the log of
// completions, as a terminal has no place for it.
func suggest(cmd *cobra.Command, of clients, word string, directive cobra.ShellCompDirective,
	ask func(context.Context, *cli.Clients) ([]string, error),
) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), clusterTimeout)
	defer stop()
	c, err := of()
	var words []string
	if err == nil {
		words, err = ask(ctx, c)
	}
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(words, func(found string) bool { return !strings.HasPrefix(found, word) }), directive
}
