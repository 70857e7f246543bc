// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// Locate returns the domains of the nodes on which pods of Jobs are, and when to ask again if one is not known.
func (p *Placer) Locate(js *jobsetv1alpha2.JobSet, jobs []domains.Unlocated) domains.Located {
	view := p.watch.View()
	if view == nil {
		return domains.Located{After: watchedAfter}
	}
	out := domains.Located{Domains: make(map[types.UID]jobsetv1alpha2.JobPlacement, len(jobs))}
	request, err := view.requestOf(js, unplacedFrom(jobs))
	for i := range jobs {
		job := &jobs[i]
		domain := view.domainOf(job.Node, placement.NameOf(job.Topology))
		if domain == (placement.Name{}) {
			out.After = watchedAfter // the node is too new, or gone
			continue
		}
		at := jobsetv1alpha2.JobPlacement{Domain: domain.String()}
		if err == nil {
			at.Nodes = view.suitable(&request.Groups[job.Place], domain)
		}
		out.Domains[job.UID] = at
	}
	return out
}

// unplacedFrom returns Jobs by replicatedJob.
func unplacedFrom(jobs []domains.Unlocated) (out []domains.Unplaced) {
	for i := range jobs {
		at := slices.IndexFunc(out, func(u domains.Unplaced) bool { return u.Place == jobs[i].Place })
		if at < 0 {
			at, out = len(out), append(out, domains.Unplaced{Place: jobs[i].Place, Topology: jobs[i].Topology})
		}
		out[at].Indexes = append(out[at].Indexes, jobs[i].Index)
	}
	return out
}

// domainOf returns the domain of a node; the empty name if that is not known.
func (v *view) domainOf(node string, topology placement.Name) placement.Name {
	obj, err := v.nodes.GetByKey(node)
	if err != nil {
		return placement.Name{}
	}
	if watched, ok := obj.(*watchedNode); ok {
		if i := slices.IndexFunc(watched.Labels, func(l placement.Label) bool { return l.Key == topology }); i >= 0 {
			return watched.Labels[i].Value
		}
	}
	return placement.Name{}
}

// suitable returns how many nodes of a domain the pods of a group can use.
func (v *view) suitable(group *placement.Group, domain placement.Name) (n int32) {
	for _, obj := range v.nodes.List() {
		if node, ok := obj.(*watchedNode); ok && node.In(group.Topology, domain) && group.Shape.Suits(&node.Node) {
			n++
		}
	}
	return n
}
