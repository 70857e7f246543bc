// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// TestUnion shows which Jobs wait for any of several reasons.
func TestUnion(t *testing.T) {
	o := observe(newSet(with("a", 2), with("b", 2), with("c", 1)))
	for name, tc := range map[string]struct {
		waits []wait
		want  string
	}{
		"nothing":                         {},
		"a reason without Jobs":           {waits: []wait{{reason: awaitsGroup}}},
		"one replicatedJob":               {waits: []wait{{reason: awaitsTurn, replicatedJobs: []int{1}}}, want: "b-0 b-1"},
		"all Jobs":                        {waits: []wait{{reason: awaitsGroup, all: true}}, want: "a-0 a-1 b-0 b-1 c-0"},
		"one Job":                         {waits: []wait{{reason: awaitsGroup, jobs: []string{"js-a-1"}}}, want: "a-1"},
		"a Job for several reasons":       {waits: []wait{{reason: awaitsDomain, replicatedJobs: []int{0}}, {reason: awaitsGroup, jobs: []string{"js-a-1"}}}, want: "a-0 a-1"},
		"different Jobs":                  {waits: []wait{{reason: awaitsDependencies, replicatedJobs: []int{2}}, {reason: awaitsGroup, jobs: []string{"js-a-0"}}}, want: "a-0 c-0"},
		"single Jobs for several reasons": {waits: []wait{{reason: awaitsDomain, jobs: []string{"js-a-0"}}, {reason: awaitsGroup, jobs: []string{"js-b-1"}}}, want: "a-0 b-1"},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Reverse(tc.waits) // the order does not matter
			w := union(o, tc.waits...)
			var got []string
			for place, jobs := range [][]string{{"a-0", "a-1"}, {"b-0", "b-1"}, {"c-0"}} {
				for _, job := range jobs {
					if w.job(place, "js-"+job) {
						got = append(got, job)
					}
				}
			}
			diff(t, "Jobs that wait", tc.want, strings.Join(got, " "))
		})
	}
}

// TestWaits shows what Jobs wait for in sets of two Jobs w and one Job other.
func TestWaits(t *testing.T) {
	exclusive := func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	}
	dependent := func(js *jobsetv1alpha2.JobSet) {
		dependsOn("w", jobsetv1alpha2.DependencyReady)(&js.Spec.ReplicatedJobs[1])
	}
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		jobs []*batchv1.Job
		// groups are the groups that exist; nil if pods have none.
		groups *gang.Observed
		want   map[awaited]string
	}{
		"nothing":                   {},
		"a dependency":              {set: []func(*jobsetv1alpha2.JobSet){dependent}, want: map[awaited]string{awaitsDependencies: "other"}},
		"a dependency that is met":  {set: []func(*jobsetv1alpha2.JobSet){dependent}, jobs: []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, ready)}},
		"a dependency, suspended":   {set: []func(*jobsetv1alpha2.JobSet){dependent, isSuspended}, want: map[awaited]string{awaitsDependencies: "other"}},
		"its turn":                  {set: []func(*jobsetv1alpha2.JobSet){inOrder}, want: map[awaited]string{awaitsTurn: "other"}},
		"its turn, suspended":       {set: []func(*jobsetv1alpha2.JobSet){inOrder, isSuspended}},
		"its turn, that has come":   {set: []func(*jobsetv1alpha2.JobSet){inOrder}, jobs: []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, succeeded)}},
		"domains":                   {set: []func(*jobsetv1alpha2.JobSet){exclusive}, want: map[awaited]string{awaitsDomain: "w other"}},
		"domains, suspended":        {set: []func(*jobsetv1alpha2.JobSet){exclusive, isSuspended}},
		"domains of Jobs that run":  {set: []func(*jobsetv1alpha2.JobSet){exclusive}, jobs: []*batchv1.Job{jobNamed("w", 0, ready), jobNamed("w", 1, ready)}, want: map[awaited]string{awaitsDomain: "other"}},
		"groups that are not there": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: &gang.Observed{API: gang.V1beta1}, want: map[awaited]string{awaitsGroup: "w other"}},
		"groups that are unknown":   {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: &gang.Observed{}, want: map[awaited]string{awaitsGroup: "all"}},
		"groups, suspended":         {set: []func(*jobsetv1alpha2.JobSet){scheduling(), isSuspended}, groups: &gang.Observed{API: gang.V1beta1}},
		"groups of single Jobs": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(entries(entry(true, "w"), entry(false, "other")))}, groups: &gang.Observed{API: gang.V1beta1},
			want: map[awaited]string{awaitsGroup: "other js-w-0 js-w-1"},
		},
		"their turn and their group": {
			set: []func(*jobsetv1alpha2.JobSet){inOrder, scheduling()}, groups: &gang.Observed{API: gang.V1beta1}, want: map[awaited]string{awaitsTurn: "other", awaitsGroup: "w other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), with("other", 1)}, tc.set...)...), tc.jobs...)
			o.Gates.ExclusivePlacement, o.Grouped = true, tc.groups
			o = indexed(o)
			s := state{Observed: o, owned: classify(o)}
			s.draft = newDraft(s)
			got := map[awaited]string{}
			for _, await := range awaits() {
				w := await(s)
				var words []string
				if w.all {
					words = append(words, "all")
				}
				for _, place := range w.replicatedJobs {
					words = append(words, o.JobSet.Spec.ReplicatedJobs[place].Name)
				}
				if words = append(words, w.jobs...); len(words) > 0 {
					got[w.reason] = strings.Join(words, " ")
				}
			}
			diff(t, "waits", tc.want, got)
		})
	}
}
