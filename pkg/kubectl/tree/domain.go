// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// domainAt is the place of the column of domains, which only JobSets with exclusive placement have.
const domainAt = 4

var domainColumns = slices.Insert(slices.Clone(columns), domainAt, cli.Column{Title: "DOMAIN", Drop: 3})

// addDomain adds the topology domain that a Job with exclusive placement was given in the present attempt.
func (j *Job) addDomain(js *jobsetv1alpha2.JobSet, replicatedJob string) {
	at := js.Status.Placement
	if at == nil || at.Restarts != js.Status.Restarts {
		return
	}
	for i := range at.ReplicatedJobs {
		rj := &at.ReplicatedJobs[i]
		if rj.Name == replicatedJob && j.Index >= 0 && j.Index < len(rj.Jobs) && rj.Jobs[j.Index].Domain != "" {
			j.Domain, j.TopologyKey = rj.Jobs[j.Index].Domain, rj.TopologyKey
		}
	}
}

// domains are the domains of an item and of those below it, in the order in which they are drawn.
func domains(it *item) []string {
	out := []string{cli.Clean(it.domain)}
	for i := range it.children {
		out = append(out, domains(&it.children[i])...)
	}
	return out
}
