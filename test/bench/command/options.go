// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/scenario"
)

const defaultOutput = "_output/bench"

// options are the settings of the scenarios.
type options struct {
	kubeconfig, clusterDir, clusterScript, upstreamDir, output, preset, image string
	// variantTexts are variants as they were given.
	variantTexts []string

	scenarios []string
	sizes     scenario.Sizes
	given     scenario.Sizes
	variants  []scenario.Variant
	runs      int
	// rounds are the rounds of the scenarios that take turns.
	rounds int

	timeout, idleFor, idleEvery              time.Duration
	keep, checkCounts, profiles, noHostnames bool
	short                                    bool
}

func newOptions() *options { return &options{} }

// preset has the sizes of all scenarios, and how often they are run.
type preset struct {
	sizes func() scenario.Sizes
	// beside are the sizes with which scenarios run beside upstream.
	beside func() scenario.Sizes
	runs   int
	// rounds are the rounds of the scenarios that take turns.
	rounds int
	// idle is how long the idle cluster is watched before a scenario, every how long it must be idle before a part.
	idle, every time.Duration
}

var presets = map[string]preset{
	"full":  {scenario.Full, scenario.FullBesideUpstream, 3, 5, 10 * time.Second, time.Second},
	"smoke": {scenario.Smoke, scenario.Smoke, 1, 1, time.Second, 300 * time.Millisecond},
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig of an administrator of the cluster. Default: that of --cluster-dir.")
	fs.StringVar(&o.clusterDir, "cluster-dir", "",
		"Directory of a cluster of hack/cluster.sh on this machine, to measure its processes, requests and stores too.")
	fs.StringVar(&o.clusterScript, "cluster-script", "hack/cluster.sh", "Script that stops and starts the programs of --cluster-dir.")
	fs.StringVar(&o.upstreamDir, "upstream-dir", "",
		"Directory of a second cluster of hack/cluster.sh, without our programs (CLUSTER_COMPONENTS=none): big, run, write and leaderworkersets run in it in turn, too, with upstream's controllers, which end with the command.")
	fs.StringVar(&o.output, "output", defaultOutput, "Directory for the results. Those of other scenarios in it are kept.")
	fs.StringVar(&o.preset, "preset", "full", "Sizes of everything that no flag is given for: full or smoke.")
	fs.StringSliceVar(&o.scenarios, "scenarios", together(), "Scenarios to run. Default: all but in-place, which needs the feature gate InPlaceRestart, fairness, restart-parts, status-writes, growth, many, rate, churn and large.")
	fs.IntVar(&o.runs, "runs", 0, "How often each scenario is run. Default: that of the preset.")
	fs.IntVar(&o.rounds, "rounds", 0,
		"How often floor, labeled-jobs, big and run take turns. Default: --runs if it is given, otherwise that of the preset.")
	fs.StringArrayVar(&o.variantTexts, "variant", nil,
		"NAME:KEY=VALUE[,KEY=VALUE...]: run big, large and run also with sets that have these annotations, and growth, many and rate only with those. May be repeated.")
	fs.StringVar(&o.image, "image", "busybox", "Image of the pods in a cluster without --cluster-dir. It must have a shell.")
	fs.DurationVar(&o.idleFor, "idle", 0, "How long the idle cluster is watched before a scenario. Default: that of the preset.")
	fs.BoolVar(&o.noHostnames, "no-hostnames", false,
		"big, run and wide: sets with enableDNSHostnames false, to show the cost of their headless Services.")
	fs.BoolVar(&o.keep, "keep", false, "Leave the last namespace of each scenario in the cluster, when that goes away anyway.")
	fs.BoolVar(&o.profiles, "profiles", false,
		"Run scenarios once more for profiles of CPU and heap, which are written to profiles/ in the output directory.")
	fs.BoolVar(&o.checkCounts, "check-counts", false,
		"Fail if numbers of requests, writes or bytes are not what they must be. Needs all scenarios but labeled-jobs, with the preset smoke.")
	fs.DurationVar(&o.timeout, "timeout", 10*time.Minute, "Longest time that a scenario waits for a condition.")
	for _, size := range o.sizeFlags() {
		fs.IntVar(size.given, size.flag, 0, size.usage+" Default: that of the preset.")
	}
	for _, list := range o.sizeLists() {
		fs.IntSliceVar(list.given, list.flag, nil, list.usage+" Default: that of the preset.")
	}
}

type sizeFlag struct {
	flag, usage string
	given, to   *int
}

func (o *options) sizeFlags() []sizeFlag {
	g, t := &o.given, &o.sizes
	return []sizeFlag{
		{"jobs", "floor, labeled-jobs and big: number of Jobs.", &g.Jobs, &t.Jobs},
		{"large-jobs", "large: number of Jobs.", &g.LargeJobs, &t.LargeJobs},
		{"run-sets", "run: number of sets; floor and labeled-jobs: as many Jobs run to completion as in all of them.", &g.RunSets, &t.RunSets},
		{"run-jobs", "run: Jobs of each set.", &g.RunJobs, &t.RunJobs},
		{"clients", "run: clients that create sets.", &g.Clients, &t.Clients},
		{"writes", "write: how often each request is made.", &g.Writes, &t.Writes},
		{"informers", "list: informers that start at once.", &g.Informers, &t.Informers},
		{"watchers", "list: watchers of one set.", &g.Watchers, &t.Watchers},
		{"updates", "list: updates that the watchers follow.", &g.Updates, &t.Updates},
		{"wide-jobs", "wide: Jobs of the one set.", &g.WideJobs, &t.WideJobs},
		{"rest-sets", "wide: sets at rest.", &g.RestSets, &t.RestSets},
		{"rest-jobs", "wide: Jobs of each set at rest.", &g.RestJobs, &t.RestJobs},
		{"rest-seconds", "wide and many: how long sets at rest are watched.", &g.RestSeconds, &t.RestSeconds},
		{"cold-sets", "cold: sets that are stored.", &g.ColdSets, &t.ColdSets},
		{"sequences", "sequences: number of sequences.", &g.Sequences, &t.Sequences},
		{"steps", "sequences: steps of each.", &g.Steps, &t.Steps},
		{"rest-sequences", "sequences: suspended sequences.", &g.RestSequences, &t.RestSequences},
		{"step-jobs", "sequences: Jobs of the step that is a JobSet.", &g.StepJobs, &t.StepJobs},
		{"groups", "groups: number of pod groups.", &g.PodGroups, &t.PodGroups},
		{"few-groups", "groups: number of pod groups to compare with.", &g.FewPodGroups, &t.FewPodGroups},
		{"group-pods", "groups: pods of each group.", &g.GroupPods, &t.GroupPods},
		{"serving-groups", "leaderworkersets: number of groups.", &g.ServingGroups, &t.ServingGroups},
		{"serving-pods", "leaderworkersets: pods of each group.", &g.ServingPods, &t.ServingPods},
		{"place-nodes", "place: number of nodes. Those that do not fill a rack are left out.", &g.PlaceNodes, &t.PlaceNodes},
		{"place-rack-nodes", "place: nodes of each rack.", &g.PlaceRackNodes, &t.PlaceRackNodes},
		{"place-jobs", "place: Jobs of the set, but not more than there are racks.", &g.PlaceJobs, &t.PlaceJobs},
		{"place-pods", "place: pods of each Job, each of which needs a node.", &g.PlacePods, &t.PlacePods},
		{"in-place-jobs", "in-place: Jobs of the set.", &g.InPlaceJobs, &t.InPlaceJobs},
		{"in-place-pods", "in-place: pods of each Job.", &g.InPlacePods, &t.InPlacePods},
		{"fairness-sets", "fairness: small sets, of --run-jobs Jobs each.", &g.FairSets, &t.FairSets},
		{"fairness-jobs", "fairness: Jobs of the large set.", &g.FairJobs, &t.FairJobs},
		{"suspended-jobs", "growth: Jobs of the suspended set, at most 100000.", &g.SuspendedJobs, &t.SuspendedJobs},
		{"many-namespaces", "many: number of namespaces.", &g.ManyNamespaces, &t.ManyNamespaces},
		{"many-sets", "many: suspended sets of each namespace.", &g.ManySets, &t.ManySets},
		{"many-watchers", "many: watchers of sets, one of ten of all sets, the others of a namespace or of a selector.", &g.ManyWatchers, &t.ManyWatchers},
		{"rate", "rate: suspended sets of one Job that are created in a second, at most 1000.", &g.Rate, &t.Rate},
		{"rate-seconds", "rate: for how long, at most 3600 seconds.", &g.RateSeconds, &t.RateSeconds},
		{"rate-jobs", "rate: Jobs of the suspended set beside them, at most 100000.", &g.RateJobs, &t.RateJobs},
		{"churn-sets", "churn: sets that are created and removed.", &g.ChurnSets, &t.ChurnSets},
		{"stuck-groups", "refusals: groups of each set.", &g.StuckGroups, &t.StuckGroups},
		{"stuck-seconds", "refusals: how long each set is watched.", &g.StuckSeconds, &t.StuckSeconds},
		{"rest-groups", "leaderworkersets: groups at rest, of two pods each.", &g.RestGroups, &t.RestGroups},
	}
}

type sizeList struct {
	flag, usage string
	given, to   *[]int
}

func (o *options) sizeLists() []sizeList {
	return []sizeList{
		{"list-sets", "list: numbers of sets, ascending.", &o.given.Lists, &o.sizes.Lists},
		{"growth-jobs", "growth: numbers of Jobs of its sets, ascending, at most 100000.", &o.given.GrowthJobs, &o.sizes.GrowthJobs},
	}
}

// complete takes from the preset what no flag was given for.
func (o *options) complete(fs *pflag.FlagSet) error {
	preset, known := presets[o.preset]
	if !known {
		return fmt.Errorf("--preset: %q is not known; must be full or smoke", o.preset)
	}
	o.sizes = preset.sizes()
	if o.upstreamDir != "" {
		o.sizes = preset.beside()
	}
	for _, size := range o.sizeFlags() {
		if fs.Changed(size.flag) {
			*size.to = *size.given
		}
		if *size.to < 1 {
			return fmt.Errorf("--%s: must be 1 or more, not %d", size.flag, *size.to)
		}
	}
	for _, list := range o.sizeLists() {
		if fs.Changed(list.flag) {
			*list.to = *list.given
		}
		if sizes := *list.to; !slices.IsSorted(sizes) || len(sizes) == 0 || sizes[0] < 1 {
			return fmt.Errorf("--%s: must ascend from 1 or more, not %v", list.flag, sizes)
		}
	}
	o.completeRuns(fs, preset)
	return errors.Join(checkRacks(o.sizes), checkGrowth(o.sizes), checkRate(o.sizes), o.checkRuns(), o.checkUpstream(), checkNames(o.scenarios), o.parseVariants())
}

// completeRuns takes from the preset how often and how long things are measured.
func (o *options) completeRuns(fs *pflag.FlagSet, preset preset) {
	o.idleEvery = preset.every
	if !fs.Changed("idle") {
		o.idleFor = preset.idle
	}
	if !fs.Changed("rounds") {
		o.rounds = preset.rounds
		if fs.Changed("runs") {
			o.rounds = o.runs
		}
	}
	if !fs.Changed("runs") {
		o.runs = preset.runs
	}
}

func (o *options) checkRuns() error {
	switch {
	case o.runs < 1:
		return fmt.Errorf("--runs: must be 1 or more, not %d", o.runs)
	case o.rounds < 1:
		return fmt.Errorf("--rounds: must be 1 or more, not %d", o.rounds)
	}
	return nil
}

// checkUpstream returns an error unless both clusters are on this machine, so that their processes can be compared.
func (o *options) checkUpstream() error {
	if o.upstreamDir == "" {
		return nil
	}
	switch {
	case o.kubeconfig != "":
		return errors.New("--upstream-dir: must not be given with --kubeconfig; give --cluster-dir, the local cluster of our programs to compare with")
	case o.clusterDir == "":
		return errors.New("--upstream-dir: must be given with --cluster-dir, the local cluster of our programs to compare with")
	}
	return nil
}

// parseVariants reads the variants, whose names must differ.
func (o *options) parseVariants() error {
	for _, text := range o.variantTexts {
		v, err := scenario.ParseVariant(text)
		if err != nil {
			return fmt.Errorf("--variant: %w", err)
		}
		if slices.ContainsFunc(o.variants, func(other scenario.Variant) bool { return other.Name == v.Name }) {
			return fmt.Errorf("--variant: the name %q must not be given twice", v.Name)
		}
		o.variants = append(o.variants, v)
	}
	return nil
}

// checkRacks returns an error unless place has a rack, with a node for each pod of a Job.
func checkRacks(s scenario.Sizes) error {
	switch {
	case s.PlacePods > s.PlaceRackNodes:
		return fmt.Errorf("--place-pods: must be at most --place-rack-nodes, which is %d, not %d", s.PlaceRackNodes, s.PlacePods)
	case s.PlaceNodes < s.PlaceRackNodes:
		return fmt.Errorf("--place-nodes: must be at least --place-rack-nodes, which is %d, not %d", s.PlaceRackNodes, s.PlaceNodes)
	}
	return nil
}

// mostJobs is how many Jobs a set may have.
const mostJobs = 100_000

// checkGrowth returns an error for sets with more Jobs than a set may have.
func checkGrowth(s scenario.Sizes) error {
	switch largest := s.GrowthJobs[len(s.GrowthJobs)-1]; {
	case largest > mostJobs:
		return fmt.Errorf("--growth-jobs: must be at most %d, the most Jobs of a set, not %d", mostJobs, largest)
	case s.SuspendedJobs > mostJobs:
		return fmt.Errorf("--suspended-jobs: must be at most %d, the most Jobs of a set, not %d", mostJobs, s.SuspendedJobs)
	}
	return nil
}

const (
	// mostRate and mostRateSeconds bound the sets of rate, whose times are kept in memory.
	mostRate        = 1000
	mostRateSeconds = 3600
)

func checkRate(s scenario.Sizes) error {
	switch {
	case s.Rate > mostRate:
		return fmt.Errorf("--rate: must be at most %d, not %d", mostRate, s.Rate)
	case s.RateSeconds > mostRateSeconds:
		return fmt.Errorf("--rate-seconds: must be at most %d, not %d", mostRateSeconds, s.RateSeconds)
	case s.RateJobs > mostJobs:
		return fmt.Errorf("--rate-jobs: must be at most %d, the most Jobs of a set, not %d", mostJobs, s.RateJobs)
	}
	return nil
}
