// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of jobset-bench.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/scenario"
)

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobset-bench",
		Short: "Measures what JobSets cost",
		Long: "jobset-bench drives a cluster with jobset-apiserver and jobset-controller through its API, and measures what that\n" +
			"costs: time, CPU, memory, requests and bytes stored. See docs/performance.md.",
		SilenceUsage: true,
	}
	cmd.AddCommand(newRun(), newCompare(), newReport())
	return cmd
}

func newRun() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run scenarios and print the results of all scenarios in the output directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags()); err != nil {
				return err
			}
			if err := o.run(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			if err := printResults(o.output, cmd.OutOrStdout()); err != nil || !o.checkCounts {
				return err
			}
			return checkCounts(o.output)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// newCompare is run with the scenarios that bare Jobs have too, in any cluster.
func newCompare() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare sets with bare Jobs in several rounds, and print one table",
		Long: "compare starts, restarts and completes Jobs and sets of Jobs by turns, and prints what sets cost beside bare Jobs. It needs only a\n" +
			"kubeconfig, and a controller for JobSets in the cluster. It creates namespaces with the label " + scenario.NamespaceKey + ", one at a time, with at\n" +
			"most as many Jobs and pods as --jobs, or --run-sets times --run-jobs, and removes each of them, also after an interrupt.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("scenarios") {
				o.scenarios = o.compared()
			}
			if err := o.complete(cmd.Flags()); err != nil {
				return err
			}
			o.short = o.upstreamDir == ""
			if err := o.run(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			if err := printResults(o.output, io.Discard); err != nil {
				return err
			}
			return printComparison(o.output, cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func newReport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Print the results of all scenarios in a directory",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return printResults(output, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&output, "output", defaultOutput, "Directory with the results.")
	return cmd
}

func (o *options) run(ctx context.Context, log io.Writer) error {
	c, err := cluster.Open(ctx, o.kubeconfig, o.clusterDir, o.clusterScript)
	if err != nil {
		return err
	}
	begin := time.Now()
	env := &scenario.Env{
		Cluster: c, Sizes: o.sizes, Runs: o.runs, Timeout: o.timeout, IdleFor: o.idleFor, IdleEvery: o.idleEvery,
		Keep: o.keep, NoHostnames: o.noHostnames, Short: o.short, Image: o.image,
		Log: func(format string, args ...any) {
			fmt.Fprintf(log, "%6.1fs  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
		},
	}
	if o.profiles {
		env.Profiles = filepath.Join(o.output, "profiles")
	}
	var chosen []scenario.Scenario
	for _, s := range scenario.All() {
		if slices.Contains(o.scenarios, s.Name) {
			chosen = append(chosen, s)
		}
	}
	if o.upstreamDir == "" {
		return o.runAll(ctx, env, scenario.WithVariants(chosen, o.variants))
	}
	env.Log("installing upstream's controllers")
	upstream, stop, err := cluster.OpenUpstream(ctx, o.upstreamDir)
	if err != nil {
		return err
	}
	return errors.Join(o.runAll(ctx, env, scenario.WithVariants(scenario.WithUpstream(chosen, upstream), o.variants)), stop())
}

// runAll saves the results after each scenario, and what was measured before a failure, so that what goes wrong later loses nothing.
func (o *options) runAll(ctx context.Context, env *scenario.Env, chosen []scenario.Scenario) error {
	results := map[string]*report.Scenario{}
	runs := func(s scenario.Scenario, n int) error {
		once := *env
		once.Runs = n
		if results[s.Name] == nil {
			result, err := s.Result(ctx, env)
			if err != nil {
				return err
			}
			results[s.Name] = result
		}
		return save(o.output, results[s.Name], s.Run(ctx, &once, results[s.Name]))
	}
	for round := range o.rounds {
		for _, s := range scenario.Turns(chosen, round) {
			if err := runs(s, 1); err != nil {
				return err
			}
		}
	}
	for _, s := range chosen {
		if !s.TakesTurns {
			if err := runs(s, o.runs); err != nil {
				return err
			}
		}
		if err := s.Profile(ctx, env, results[s.Name]); err != nil {
			return err
		}
	}
	return nil
}

// save writes what was measured, also before a failure, which it returns. Nothing is written if nothing was measured,
// so that earlier results stay.
func save(dir string, result *report.Scenario, failure error) error {
	if failure != nil && len(result.Phases) == 0 {
		return failure
	}
	return errors.Join(failure, result.Save(dir))
}

// printComparison writes the table of sets beside bare Jobs.
func printComparison(dir string, out io.Writer) error {
	scenarios, err := report.Load(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n\n%s%s%s", report.HostOf(scenarios), report.Comparison(scenarios), report.BesideUpstream(scenarios), report.Requests(scenarios))
	return err
}

// printResults writes the results in all forms to the directory, and the readable ones to the terminal too.
func printResults(dir string, out io.Writer) error {
	scenarios, err := report.Load(dir)
	if err != nil {
		return err
	}
	return report.Write(dir, scenarios, out)
}

func checkCounts(dir string) error {
	scenarios, err := report.Load(dir)
	if err != nil {
		return err
	}
	return report.CheckCounts(scenarios)
}

// together are the scenarios that one cluster can run. The others need a feature gate.
func together() []string {
	alone := []string{"in-place", "fairness", "restart-parts", "status-writes", "growth", "many", "rate", "churn", "large"}
	return slices.DeleteFunc(names(), func(name string) bool { return slices.Contains(alone, name) })
}

func names() []string {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	return names
}

// compared are the scenarios that are compared with each other.
func (o *options) compared() []string {
	var names []string
	for _, s := range scenario.All() {
		if s.TakesTurns || o.upstreamDir != "" && slices.Contains(scenario.BesideUpstream, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func checkNames(given []string) error {
	for _, name := range given {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("--scenarios: %q is not known; known are %s", name, strings.Join(names(), ", "))
		}
	}
	if len(given) == 0 {
		return errors.New("--scenarios: must name one or more of " + strings.Join(names(), ", "))
	}
	return nil
}
