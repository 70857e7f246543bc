// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement/shortage"
)

// TestParseReadsWhatPlacementsSay reads the messages of random shortages, also of those in which a word has a singular.
func TestParseReadsWhatPlacementsSay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		from := placement.Shortage{
			Group: placement.NameOf("workers"), Topology: placement.NameOf("example.com/rack"),
			Jobs: 1 + random.IntN(3), Others: random.IntN(3), Pods: 1 + random.IntN(3),
			Usable: random.IntN(3), Taken: random.IntN(9), Takers: random.IntN(6),
		}
		want := shortage.Shortage{
			Group: "workers", Topology: "example.com/rack", Jobs: from.Jobs, Others: from.Others, Pods: from.Pods, Usable: from.Usable, Taken: from.Taken,
		}
		if from.Taken == 0 {
			from.Takers = 0
		}
		for i := range from.Takers {
			from.TakenBy = append(from.TakenBy, placement.Taker{Set: placement.NameOf(fmt.Sprintf("team/set-%d", i)), Domains: 2})
			if i < 3 {
				want.TakenBy = append(want.TakenBy, shortage.Taker{Set: fmt.Sprintf("team/set-%d", i), Domains: 2})
			}
		}
		for i, n := 0, random.IntN(5); i < n; i++ {
			from.Lacking = append(from.Lacking, placement.Cause{Reason: fmt.Sprintf("example.com/gpu-%d", i), Domains: 1})
			want.Lacking++
		}
		for i, n := 0, random.IntN(5); i < n; i++ {
			from.Unsuitable = append(from.Unsuitable, placement.Cause{Reason: fmt.Sprintf("taint key-%d", i), Domains: 1})
			want.Unsuitable++
		}
		from.Domains = from.Usable + from.Taken + want.Lacking + want.Unsuitable
		want.Domains = from.Domains
		if want.Lacking > 0 {
			from.Closest, want.Closest = placement.NameOf("r7"), "r7"
			from.Missing = placement.Amount{Resource: placement.NameOf("cpu"), Value: 4000}
		}
		got, found := shortage.Parse(from.Message())
		if diff := cmp.Diff(want, got); !found || diff != "" {
			t.Fatalf("message %q (found: %v; -want +got):\n%s", from.Message(), found, diff)
		}
	}
}

func TestParseOtherTexts(t *testing.T) {
	whole := placement.Shortage{
		Group: placement.NameOf("w"), Topology: placement.NameOf("rack"), Jobs: 2, Pods: 4, Domains: 9, Taken: 3, Takers: 1,
		TakenBy: []placement.Taker{{Set: placement.NameOf("team/" + strings.Repeat("x", 60)), Domains: 3}}, Lacking: []placement.Cause{{Reason: "cpu", Domains: 6}},
	}
	message := whole.Message()
	for name, tc := range map[string]struct {
		message string
		want    shortage.Shortage
		found   bool
	}{
		"no message": {message: ""},
		"other text": {message: "nodes and pods are not known yet: nodes"},
		"no label": {
			message: `1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": no node has that label`,
			want:    shortage.Shortage{Group: "w", Topology: "rack", Jobs: 1, Pods: 1}, found: true,
		},
		"cut": {
			message: message[:strings.Index(message, "xxx")+3] + "...",
			want:    shortage.Shortage{Group: "w", Topology: "rack", Jobs: 2, Pods: 4, Domains: 9, Taken: 3}, found: true,
		},
		"a number that is too long": {
			message: strings.Repeat("9", 40) + ` jobs of replicatedJob "w", with 1 pod, each need a domain of "rack": no node has that label`,
			want:    shortage.Shortage{Group: "w", Topology: "rack", Pods: 1}, found: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := shortage.Parse(tc.message)
			if diff := cmp.Diff(tc.want, got); diff != "" || found != tc.found {
				t.Errorf("found: %v, want %v (-want +got):\n%s", found, tc.found, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`1 job of replicatedJob "w", with 1 pod, needs a domain of "rack": of 2 domains, 1 is taken by jobs (a/b: 1), 1 lacks room (cpu: 1)`)
	f.Fuzz(func(t *testing.T, message string) {
		if s, found := shortage.Parse(message); !found && s.Domains != 0 {
			t.Errorf("no message, and %d domains", s.Domains)
		}
	})
}
