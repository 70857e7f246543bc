// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

func TestVariantsFollowTheirScenariosAndTurnsAlternate(t *testing.T) {
	variants := []Variant{{Name: "a"}, {Name: "b"}}
	all := WithVariants(All(), variants)
	names := func(scenarios []Scenario) (names []string) {
		for _, s := range scenarios {
			names = append(names, s.Name)
		}
		return names
	}
	forward := []string{"floor", "labeled-jobs", "big", "big+a", "big+b", "run", "run+a", "run+b"}
	back := []string{"run+b", "run+a", "run", "big+b", "big+a", "big", "labeled-jobs", "floor"}
	for round, want := range [][]string{forward, back, forward} {
		if d := cmp.Diff(want, names(Turns(all, round))); d != "" {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
	}
	if want := len(All()) + 2*len(varied) + len(variedOnly); len(all) != want {
		t.Errorf("%d scenarios, want %d: two variants beside %v and in place of %v", len(all), want, varied, variedOnly)
	}
	if d := cmp.Diff([]string{"growth+a", "growth+b"}, names(WithVariants([]Scenario{{definition: definition{Name: "growth"}}}, variants))); d != "" {
		t.Errorf("growth (-want +got):\n%s", d)
	}
}

func TestScenariosTakeTurnsWithThoseOfUpstream(t *testing.T) {
	upstream := &cluster.Cluster{Dir: "upstream", Upstream: true}
	var got, there []string
	for _, s := range Turns(WithVariants(WithUpstream(All(), upstream), []Variant{{Name: "a"}}), 0) {
		got = append(got, s.Name)
		env := s.in(&Env{Cluster: &cluster.Cluster{Dir: "local"}})
		if env.Cluster == upstream {
			there = append(there, s.Name)
		}
		if want := !slices.Contains([]string{"floor", "labeled-jobs"}, s.Name); env.Beside != want {
			t.Errorf("%s: beside upstream: %t, want %t", s.Name, env.Beside, want)
		}
	}
	if d := cmp.Diff([]string{
		"floor", "labeled-jobs", "big+upstream", "big", "big+a", "large+upstream", "large", "large+a", "run+upstream", "run", "run+a", "write+upstream", "write", "list+upstream", "list",
		"leaderworkersets+upstream", "leaderworkersets", "place+upstream", "place", "many+upstream", "many",
	}, got); d != "" {
		t.Errorf("the order (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"big+upstream", "large+upstream", "run+upstream", "write+upstream", "list+upstream", "leaderworkersets+upstream", "place+upstream", "many+upstream"}, there); d != "" {
		t.Errorf("those that run with upstream's controllers (-want +got):\n%s", d)
	}
}

func TestSetsOfVariantsHaveTheirAnnotations(t *testing.T) {
	var got []map[string]string
	collect := Scenario{definition: definition{Name: "big", run: func(_ context.Context, r *runner) error {
		s := &space{runner: r, name: "bench"}
		got = append(got, s.set("train", 1, running).Annotations)
		if want := len(got) == 2; r.Short != want {
			t.Errorf("short: %t, want %t", r.Short, want)
		}
		return nil
	}}}
	env := &Env{Cluster: &cluster.Cluster{Dir: "local"}}
	for _, s := range append(WithVariants([]Scenario{collect}, []Variant{{Name: "a", Annotations: map[string]string{"b": "c"}}}), collect) {
		if err := s.run(t.Context(), &runner{Env: env, to: &report.Scenario{}}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]map[string]string{nil, {"b": "c"}, nil}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPodsOfOtherClustersHaveCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		dir, image  string
		annotations map[string]string
		want        []string
	}{
		"simulated nodes run nothing":   {"local", "busybox", succeeding, nil},
		"pods that end":                 {"", "example.com/shell:1", succeeding, []string{"sh", "-c", "trap 'exit 0' TERM; sleep 3 & wait"}},
		"pods that run until they stop": {"", "example.com/shell:1", running, []string{"sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &space{runner: &runner{Env: &Env{Cluster: &cluster.Cluster{Dir: tc.dir}, Image: tc.image}}}
			container := s.jobSpec(tc.annotations).Template.Spec.Containers[0]
			if d := cmp.Diff(tc.want, container.Command); d != "" {
				t.Errorf("command (-want +got):\n%s", d)
			}
			if container.Image != tc.image && tc.dir == "" {
				t.Errorf("image %s, want %s", container.Image, tc.image)
			}
		})
	}
}
