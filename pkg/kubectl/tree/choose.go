// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// choice is what is shown with a line of its own.
type choice struct {
	jobs map[*Job]bool
	pods map[*Pod]bool
}

// choose decides which Jobs and pods get a line of their own.
func choose(jobs []*Job, pods int, all bool) choice {
	all = all || len(jobs)+pods <= smallSet
	if !all && len(jobs) > fewJobs {
		jobs = worst(jobs, severityOfJob, mostJobs)
	}
	c := choice{jobs: map[*Job]bool{}, pods: map[*Pod]bool{}}
	var candidates []*Pod
	for _, j := range jobs {
		c.jobs[j] = true
		candidates = append(candidates, j.unlike(all)...)
	}
	if !all {
		candidates = worst(candidates, func(p *Pod) severity { return p.severity }, mostPods)
	}
	for _, p := range candidates {
		c.pods[p] = true
	}
	return c
}

// listed returns the Jobs that may get a line, and the number of their pods. Jobs that do not exist get one only if all are
// requested: those of a replicatedJob wait for the same.
func (t *Tree) listed(all bool) (jobs []*Job, pods int) {
	for i := range t.ReplicatedJobs {
		for k := range t.ReplicatedJobs[i].Jobs {
			if j := &t.ReplicatedJobs[i].Jobs[k]; j.exists() || all {
				jobs = append(jobs, j)
				pods += len(j.Pods)
			}
		}
	}
	return jobs, pods
}

// unlike returns the pods of the Job, but of those with the same problem at most mostAlike, unless all are requested.
func (j *Job) unlike(all bool) []*Pod {
	var pods []*Pod
	alike := map[string]int{}
	for i := range j.Pods {
		p := &j.Pods[i]
		if p.severity > well {
			alike[p.State]++
		}
		if all || alike[p.State] <= mostAlike {
			pods = append(pods, p)
		}
	}
	return pods
}

// worst returns those that are not well, at most so many, the worst of them.
func worst[T any](from []T, severityOf func(T) severity, most int) []T {
	found := slices.DeleteFunc(slices.Clone(from), func(x T) bool { return severityOf(x) == well })
	slices.SortStableFunc(found, func(a, b T) int { return -cmp.Compare(severityOf(a), severityOf(b)) })
	return found[:min(most, len(found))]
}

func worstOf(jobs []*Job) (s severity) {
	for _, j := range jobs {
		s = max(s, severityOfJob(j))
	}
	return s
}

// nodes describes where pods are: the name of their only node, or the number of nodes.
func nodes(pods []*Pod) string {
	found := map[string]bool{}
	for _, p := range pods {
		if p.Node != "" {
			found[p.Node] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	if len(found) == 1 {
		return slices.Collect(maps.Keys(found))[0]
	}
	return cli.Count(len(found), "node")
}

// states counts pods by state, the most frequent first.
func states(pods []*Pod) string {
	counts := map[string]int{}
	for _, p := range pods {
		counts[p.State]++
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]),
			cmp.Compare(a, b))
	})
	parts := make([]string, 0, len(order))
	for _, state := range order {
		parts = append(parts, fmt.Sprintf("%s %s", cli.Count(counts[state], "pod"), state))
	}
	return strings.Join(parts, ", ")
}

func pointers(pods []Pod) []*Pod {
	out := make([]*Pod, 0, len(pods))
	for i := range pods {
		out = append(out, &pods[i])
	}
	return out
}
