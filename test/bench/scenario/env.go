// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario has the scenarios that are measured. Each does its work through the API as any client would, and says
// only when a part of it begins and ends; package cluster watches what that costs.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// Sizes are the amount of work of the scenarios.
type Sizes struct {
	// Jobs are the jobs of floor and of the one set of big.
	Jobs int
	// LargeJobs are the Jobs of the one set of large.
	LargeJobs int
	// RunSets are the sets of run, each of RunJobs Jobs, created by Clients clients.
	RunSets, RunJobs, Clients int
	// Writes is how often each request of write is made.
	Writes int
	// Lists are the numbers of sets that list works with, from small to large.
	Lists []int
	// Informers start at once; Watchers follow Updates of one status.
	Informers, Watchers, Updates int
	// WideJobs are the Jobs of the one set of wide, RestSets its sets at rest, of RestJobs Jobs each.
	WideJobs, RestSets, RestJobs int
	// RestSeconds is how long sets at rest are watched.
	RestSeconds int
	// ColdSets are stored when our server starts.
	ColdSets int
	// Sequences are the sequences of the scenario, of Steps steps each; RestSequences are suspended; StepJobs are the Jobs
	// of a step that is a set.
	Sequences, Steps, RestSequences, StepJobs int
	// PodGroups and FewPodGroups are the groups of the scenario of pod groups, of GroupPods pods each.
	PodGroups, FewPodGroups, GroupPods int
	// ServingGroups are the groups of leaderworkersets, of ServingPods pods each; RestGroups are groups at rest, of two pods each.
	ServingGroups, ServingPods, RestGroups int
	// StuckGroups are the groups of each set of refusals, which is watched for StuckSeconds.
	StuckGroups, StuckSeconds int
	// PlaceNodes are the nodes of place, in racks of PlaceRackNodes. Its set has PlaceJobs Jobs, but not more than there
	// are racks, of PlacePods pods each.
	PlaceNodes, PlaceRackNodes, PlaceJobs, PlacePods int
	// InPlaceJobs are the Jobs of in-place, of InPlacePods pods each.
	InPlaceJobs, InPlacePods int
	// FairSets are the small sets of fairness, of RunJobs Jobs each, and FairJobs the Jobs of the large one.
	FairSets, FairJobs int
	// GrowthJobs are the numbers of Jobs of the sets of growth, ascending. SuspendedJobs is the number of Jobs of its suspended set.
	GrowthJobs    []int
	SuspendedJobs int
	// ManyNamespaces are the namespaces of many, of ManySets sets each, which ManyWatchers watch.
	ManyNamespaces, ManySets, ManyWatchers int
	// Rate is how many sets rate creates in each of RateSeconds seconds, beside a set of RateJobs Jobs.
	Rate, RateSeconds, RateJobs int
	// ChurnSets is how many sets churn creates and removes.
	ChurnSets int
}

// Full are the sizes that figures are published for.
func Full() Sizes {
	return Sizes{
		Jobs: 400, LargeJobs: 2000, RunSets: 200, RunJobs: 4, Clients: 16, Writes: 300, Lists: []int{2000, 10000}, Informers: 16, Watchers: 50,
		Updates: 500, WideJobs: 2000, RestSets: 5000, RestJobs: 4, RestSeconds: 60, ColdSets: 10000,
		Sequences: 200, Steps: 5, RestSequences: 2000, StepJobs: 400, PodGroups: 100, FewPodGroups: 10, GroupPods: 100,
		ServingGroups: 100, ServingPods: 8, RestGroups: 1000, StuckGroups: 150, StuckSeconds: 120,
		PlaceNodes: 2000, PlaceRackNodes: 16, PlaceJobs: 125, PlacePods: 15, InPlaceJobs: 50, InPlacePods: 100, FairSets: 60, FairJobs: 2000,
		GrowthJobs: []int{400, 2000, 10000}, SuspendedJobs: 100000, ManyNamespaces: 1000, ManySets: 10, ManyWatchers: 200,
		Rate: 100, RateSeconds: 60, RateJobs: 2000, ChurnSets: 200000,
	}
}

// Smoke are sizes at which numbers of requests and bytes come out, and times mean nothing.
func Smoke() Sizes {
	return Sizes{
		Jobs: 20, LargeJobs: 40, RunSets: 10, RunJobs: 4, Clients: 4, Writes: 20, Lists: []int{100}, Informers: 4, Watchers: 5,
		Updates: 20, WideJobs: 40, RestSets: 20, RestJobs: 4, RestSeconds: 5, ColdSets: 100,
		Sequences: 10, Steps: 3, RestSequences: 20, StepJobs: 20, PodGroups: 4, FewPodGroups: 2, GroupPods: 5,
		ServingGroups: 12, ServingPods: 3, RestGroups: 10, StuckGroups: 110, StuckSeconds: 5,
		PlaceNodes: 40, PlaceRackNodes: 4, PlaceJobs: 8, PlacePods: 3, InPlaceJobs: 5, InPlacePods: 20, FairSets: 5, FairJobs: 40,
		GrowthJobs: []int{10, 20}, SuspendedJobs: 100, ManyNamespaces: 4, ManySets: 3, ManyWatchers: 11,
		Rate: 5, RateSeconds: 3, RateJobs: 20, ChurnSets: 100,
	}
}

// Env is what scenarios work with.
type Env struct {
	Cluster *cluster.Cluster
	Sizes   Sizes
	Runs    int
	// Timeout bounds each wait.
	Timeout time.Duration
	// NoHostnames leaves out the headless Services of sets, whose endpoints change with each pod.
	NoHostnames bool
	// Annotations are the annotations of sets.
	Annotations map[string]string
	// Image is the image of pods in a cluster that may have real nodes.
	Image string
	// Short leaves out the parts of big that bare Jobs have not: suspend, resume and delete.
	Short bool
	// Beside leaves out the parts that a cluster with upstream's controllers cannot have, and those that are not compared with it.
	Beside bool
	// Keep leaves the last namespace of a scenario in the cluster, when that goes away anyway.
	Keep bool
	// IdleFor is how long the idle cluster is watched before each scenario.
	IdleFor time.Duration
	// IdleEvery is how long the cluster must be idle before a part of a scenario begins, and after it.
	IdleEvery time.Duration
	// Profiles is the directory for profiles of the programs; empty for none.
	Profiles string
	// Log prints the progress.
	Log func(format string, args ...any)
}

// Scenario is one scenario.
type Scenario struct {
	definition
	// cluster is where it runs if that is another cluster than the one of the others; otherwise nil.
	cluster *cluster.Cluster
	// beside scenarios take turns with the same work in a cluster with upstream's controllers.
	beside bool
}

// definition is what a scenario does.
type definition struct {
	Name string
	// Sizes are the sizes which matter to it.
	Sizes func(Sizes) map[string]int
	run   func(ctx context.Context, r *runner) error
	// profiled scenarios do not take long, so that they are run once more for profiles.
	profiled bool
	// TakesTurns is for scenarios that are compared with each other: the first run of each is followed by the second of
	// each, so that what changes in the cluster or on the machine meanwhile changes all of them.
	TakesTurns bool
}

// All returns the scenarios in the order in which they are run.
func All() (all []Scenario) {
	for _, d := range definitions() {
		all = append(all, Scenario{definition: d})
	}
	return all
}

func definitions() []definition {
	return []definition{
		{"floor", bareSizes, floor, true, true},
		{"labeled-jobs", bareSizes, labeledJobs, false, true},
		{"big", func(s Sizes) map[string]int { return map[string]int{"jobs": s.Jobs} }, big, true, true},
		{"large", func(s Sizes) map[string]int { return map[string]int{"jobs": s.LargeJobs} }, large, false, false},
		{"run", func(s Sizes) map[string]int {
			return map[string]int{"sets": s.RunSets, "jobs of each": s.RunJobs, "clients": s.Clients}
		}, run, true, true},
		{"write", func(s Sizes) map[string]int { return map[string]int{"requests of each kind": s.Writes} }, write, true, false},
		{"list", func(s Sizes) map[string]int {
			return map[string]int{"informers": s.Informers, "watchers": s.Watchers, "updates": s.Updates}
		}, list, true, false},
		{"cold", func(s Sizes) map[string]int { return map[string]int{"sets": s.ColdSets} }, cold, false, false},
		{"wide", func(s Sizes) map[string]int {
			return map[string]int{"jobs of one set": s.WideJobs, "sets at rest": s.RestSets, "jobs of each": s.RestJobs}
		}, wide, false, false},
		{"sequences", func(s Sizes) map[string]int {
			return map[string]int{"sequences": s.Sequences, "steps": s.Steps, "sequences at rest": s.RestSequences, "jobs of a step": s.StepJobs}
		}, sequences, false, false},
		{"groups", func(s Sizes) map[string]int {
			return map[string]int{"groups": s.PodGroups, "few groups": s.FewPodGroups, "pods of each": s.GroupPods}
		}, podGroups, false, false},
		{"leaderworkersets", func(s Sizes) map[string]int {
			return map[string]int{"groups": s.ServingGroups, "pods of each": s.ServingPods, "groups at rest": s.RestGroups}
		}, leaderWorkerSets, false, false},
		{"refusals", func(s Sizes) map[string]int {
			return map[string]int{"groups of each set": s.StuckGroups, "seconds": s.StuckSeconds}
		}, refusals, false, false},
		{"place", func(s Sizes) map[string]int {
			return map[string]int{"nodes": s.PlaceNodes, "racks": s.placedRacks(), "jobs": s.placedJobs(), "pods of each": s.PlacePods}
		}, place, false, false},
		{"in-place", func(s Sizes) map[string]int {
			return map[string]int{"jobs": s.InPlaceJobs, "pods of each": s.InPlacePods}
		}, restartInPlace, true, false},
		{"fairness", func(s Sizes) map[string]int {
			return map[string]int{"small sets": s.FairSets, "jobs of each": s.RunJobs, "jobs of one set": s.FairJobs}
		}, fairness, false, false},
		{"restart-parts", func(s Sizes) map[string]int { return map[string]int{"jobs": s.Jobs} }, restartParts, false, false},
		{"status-writes", func(s Sizes) map[string]int { return map[string]int{"requests of each kind": s.Writes} }, statusWrites, false, false},
		{"growth", func(s Sizes) map[string]int {
			return map[string]int{"jobs from": s.GrowthJobs[0], "jobs to": s.GrowthJobs[len(s.GrowthJobs)-1], "suspended jobs": s.SuspendedJobs}
		}, growth, false, false},
		{"many", func(s Sizes) map[string]int {
			return map[string]int{"namespaces": s.ManyNamespaces, "sets of each": s.ManySets, "watchers": s.ManyWatchers}
		}, many, false, false},
		{"rate", func(s Sizes) map[string]int {
			return map[string]int{"sets in a second": s.Rate, "seconds": s.RateSeconds, "jobs of one set": s.RateJobs}
		}, rate, false, false},
		{"churn", func(s Sizes) map[string]int { return map[string]int{"sets": s.ChurnSets} }, churn, false, false},
	}
}

func bareSizes(s Sizes) map[string]int {
	return map[string]int{"jobs": s.Jobs, "jobs until completed": s.RunSets * s.RunJobs}
}

// runner runs one scenario.
type runner struct {
	*Env
	to    *report.Scenario
	meter *cluster.Meter
	// walls is what each phase took, if it is run again for profiles only.
	walls map[string]time.Duration
}

// Result returns where the scenario adds what it measures, empty.
func (s Scenario) Result(ctx context.Context, env *Env) (*report.Scenario, error) {
	host, err := s.in(env).Cluster.Host(ctx)
	return &report.Scenario{Name: s.Name, Sizes: s.Sizes(env.Sizes), Begun: time.Now().UTC(), Host: host}, err
}

// Run runs the scenario and adds what it measures.
func (s Scenario) Run(ctx context.Context, env *Env, to *report.Scenario) error {
	env = s.in(env)
	r := &runner{Env: env, to: to}
	var err error
	if r.meter, err = env.Cluster.NewMeter(ctx, env.IdleFor, env.IdleEvery); err != nil {
		return err
	}
	if err := s.run(ctx, r); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	to.Runs += env.Runs
	return nil
}

// each does the runs one after the other, each in a namespace of its own.
func (r *runner) each(ctx context.Context, watch watched, do func(ctx context.Context, s *space) error) error {
	for n := range r.Runs {
		r.Log("%s: run %d", r.to.Name, r.to.Runs+n+1)
		if err := r.inSpace(ctx, watch, false, do); err != nil {
			return err
		}
	}
	return nil
}

// measure does the work between begin and end of a phase.
func (r *runner) measure(ctx context.Context, phase string, work func(ctx context.Context) error) (*report.Phase, error) {
	window, err := r.meter.Begin(ctx)
	if err != nil {
		return nil, err
	}
	profiled := r.profile(ctx, phase)
	if err := errors.Join(work(ctx), profiled()); err != nil {
		return nil, fmt.Errorf("%s: %w", phase, err)
	}
	took := window.Done()
	to := r.to.Phase(phase)
	if err := window.End(ctx, to); err != nil {
		return nil, fmt.Errorf("%s: %w", phase, err)
	}
	r.Log("%s: %s took %.2fs", r.to.Name, phase, took.Seconds())
	return to, nil
}
