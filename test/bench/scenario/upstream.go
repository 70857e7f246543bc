// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// BesideUpstream are the scenarios that run in a cluster with upstream's controllers, too, beside those that show what bare Jobs cost.
var BesideUpstream = []string{"big", "large", "run", "write", "list", "leaderworkersets", "place", "many"}

// FullBesideUpstream are the sizes that figures beside upstream are published for.
func FullBesideUpstream() Sizes {
	s := Full()
	s.Lists = []int{2000}
	s.PlaceNodes, s.PlaceRackNodes, s.PlaceJobs, s.PlacePods = 500, 10, 50, 9
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

// addStored adds the bytes of the objects of namespaces in the etcd of kube-apiserver, which upstream stores sets in, too.
func (r *runner) addStored(ctx context.Context, phase *report.Phase, namespaces ...string) error {
	if !r.Beside {
		return nil
	}
	bytes, err := r.Cluster.StoredIn(ctx, namespaces...)
	if err != nil {
		return err
	}
	phase.Add(report.MainStoreBytes, report.UnitBytes, float64(bytes))
	return nil
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
