// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// BesideUpstream are the scenarios that run in a cluster with upstream's controllers, too, beside those that show what bare Jobs cost.
var BesideUpstream = []string{"big", "run", "write", "list", "leaderworkersets", "many"}

// FullBesideUpstream are the sizes that figures beside upstream are published for.
func FullBesideUpstream() Sizes {
	s := Full()
	s.Lists = []int{2000}
	s.ManyNamespaces, s.ManySets = 20, 100
	return s
}

// WithUpstream adds the same work in the cluster with upstream's controllers before each scenario that runs there. They take turns.
func WithUpstream(scenarios []Scenario, upstream *cluster.Cluster) []Scenario {
	var all []Scenario
	for _, s := range scenarios {
		if !slices.Contains(BesideUpstream, s.Name) {
			all = append(all, s)
			continue
		}
		s.TakesTurns, s.beside = true, true
		there := s
		there.Name, there.cluster, there.profiled = report.VariantName(s.Name, report.Upstream), upstream, false
		all = append(all, there, s)
	}
	return all
}

// in returns what the scenario works with.
func (s Scenario) in(env *Env) *Env {
	other := *env
	other.Beside = s.beside
	if s.cluster != nil {
		other.Cluster = s.cluster
	}
	return &other
}
