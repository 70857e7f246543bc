// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
)

// hash is the beginning of `printf JobSet/default/train | sha1sum`.
const hash = "9820341ee6"

func job(name string, replicas int32, pods int64, after ...string) podgroups.Job {
	return podgroups.Job{Name: name, Replicas: replicas, Pods: pods, After: after}
}

func gang(targets ...string) podgroups.Entry { return podgroups.Entry{Targets: targets, Gang: true} }

func basic(targets ...string) podgroups.Entry { return podgroups.Entry{Targets: targets} }

func train(jobs []podgroups.Job, entries ...podgroups.Entry) podgroups.Set {
	return podgroups.Set{Namespace: "default", Name: "train", Jobs: jobs, Entries: entries}
}

func TestGroups(t *testing.T) {
	jobs := []podgroups.Job{job("launcher", 1, 1), job("workers", 2, 4), job("idle", 0, 4)}
	whole, staged, empty := train(jobs), train([]podgroups.Job{jobs[0], job("workers", 2, 4, "launcher"), jobs[2]}), train([]podgroups.Job{jobs[2]})
	whole.Group(true)
	staged.Group(true)
	empty.Group(true)
	cases := map[string]struct {
		set  podgroups.Set
		want []podgroups.Group
	}{
		"one group of all pods": {set: whole, want: []podgroups.Group{{Template: "train-" + hash, Name: "train-" + hash, Job: -1, Pods: 9}}},
		"a group for each replicatedJob that has pods, if they start one after another": {set: staged, want: []podgroups.Group{
			{Template: "launcher-" + hash, Name: "train-launcher-" + hash, Job: -1, Pods: 1},
			{Template: "workers-" + hash, Name: "train-workers-" + hash, Entry: 1, Job: -1, Pods: 8},
		}},
		"replicatedJobs that are joined": {set: train(jobs, gang("launcher", "workers"), gang("idle")), want: []podgroups.Group{
			{Template: "launcher-workers-" + hash, Name: "train-launcher-workers-" + hash, Job: -1, Pods: 9},
		}},
		"a group for each Job": {set: train(jobs, basic("launcher", "idle"), podgroups.Entry{Targets: []string{"workers"}, PerJob: true}), want: []podgroups.Group{
			{Template: "launcher-idle-" + hash, Name: "train-launcher-idle-" + hash, Job: -1, Pods: 1},
			{Template: "workers-0-" + hash, Name: "train-workers-0-" + hash, Entry: 1, Job: 0, Pods: 4},
			{Template: "workers-1-" + hash, Name: "train-workers-1-" + hash, Entry: 1, Job: 1, Pods: 4},
		}},
		"a set without pods": {set: empty},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.set.Groups()); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if got := tc.set.Count(); got != int64(len(tc.want)) {
				t.Errorf("counted %d groups, want %d", got, len(tc.want))
			}
		})
	}
}

// Objects of the main API have these names: templates are labels, and PodGroups subdomains, of at most 63 characters here.
func TestNamesAreValid(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, name := range []string{"a", "-a", "---", "0", strings.Repeat("-", 70), long, strings.Repeat("b", 51) + "--"} {
		set := podgroups.Set{Namespace: "default", Name: long, Jobs: []podgroups.Job{job(name, 1, 1)}, Entries: []podgroups.Entry{gang(name)}}
		for _, group := range set.Groups() {
			for _, generated := range []string{group.Template, group.Name, set.WorkloadName()} {
				if problems := validation.IsDNS1123Label(generated); len(problems) > 0 {
					t.Errorf("a replicatedJob %q results in the name %q: %v", name, generated, problems)
				}
			}
		}
	}
}

// Sets of names that are cut at the same place, and sets of one name in two namespaces, have different groups.
func TestNamesIdentifyTheSet(t *testing.T) {
	a := podgroups.Set{Namespace: "default", Name: strings.Repeat("a", 60) + "-1"}
	b, c := a, a
	b.Name, c.Namespace = strings.Repeat("a", 60)+"-2", "other"
	if a.WorkloadName() == b.WorkloadName() || a.WorkloadName() == c.WorkloadName() {
		t.Errorf("names are equal: %q, %q, %q", a.WorkloadName(), b.WorkloadName(), c.WorkloadName())
	}
}

func TestDuplicates(t *testing.T) {
	cases := map[string]struct {
		set  podgroups.Set
		want string
	}{
		"none": {set: train([]podgroups.Job{job("a", 1, 1), job("b", 1, 1)}, gang("a"), gang("b"))},
		"a joined name that a replicatedJob has": {
			set:  train([]podgroups.Job{job("a", 1, 1), job("b", 1, 1), job("a-b", 1, 1)}, gang("a", "b"), gang("a-b")),
			want: "a-b-" + hash,
		},
		"the name of a Job that a replicatedJob has": {
			set:  train([]podgroups.Job{job("a", 1, 1), job("a-0", 1, 1)}, podgroups.Entry{Targets: []string{"a"}, PerJob: true}, gang("a-0")),
			want: "a-0-" + hash,
		},
		"names of PodGroups that are cut at the same place": {
			set:  train([]podgroups.Job{job(strings.Repeat("a", 46)+"1", 1, 1), job(strings.Repeat("a", 46)+"2", 1, 1)}, gang(strings.Repeat("a", 46)+"1"), gang(strings.Repeat("a", 46)+"2")),
			want: "train-" + strings.Repeat("a", 46) + "-" + hash,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := podgroups.Duplicate(tc.set.Groups()); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDeadlock(t *testing.T) {
	chain := []podgroups.Job{job("a", 1, 1), job("b", 1, 1, "a"), job("c", 1, 1, "b")}
	crossed := []podgroups.Job{job("a", 1, 1), job("b", 1, 1, "a"), job("c", 1, 1), job("d", 1, 1, "c")}
	alone := train(chain)
	alone.Group(true)
	perJob := podgroups.Entry{Targets: []string{"b"}, PerJob: true, Gang: true}
	cases := map[string]struct {
		set  podgroups.Set
		want int
	}{
		"each alone":                          {set: alone, want: -1},
		"joined with what it waits for":       {set: train(chain, gang("c"), gang("a", "b")), want: 1},
		"joined by way of another one":        {set: train(chain, gang("a", "c"), gang("b")), want: 0},
		"joined by way of one without a gang": {set: train(chain, basic("b"), gang("a", "c")), want: 1},
		"joined without a gang":               {set: train(chain, basic("a", "b", "c")), want: -1},
		"a gang for each Job":                 {set: train(chain, gang("a"), perJob, gang("c")), want: -1},
		"two gangs that wait for each other":  {set: train(crossed, gang("a", "d"), gang("b", "c")), want: 0},
		"two gangs that start in order":       {set: train(crossed, gang("a", "c"), gang("b", "d")), want: -1},
		"only behind a deadlock":              {set: train(append(chain[:3:3], job("z", 1, 1, "c")), gang("z"), gang("a", "b"), gang("c")), want: 1},
		"a cycle without a gang":              {set: train([]podgroups.Job{job("a", 1, 1, "b"), job("b", 1, 1, "a")}, basic("a", "b")), want: -1},
		"what does not exist":                 {set: train([]podgroups.Job{job("a", 1, 1, "lost")}, gang("a")), want: -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.set.Deadlock(); got != tc.want {
				t.Errorf("got entry %d, want %d", got, tc.want)
			}
		})
	}
}
