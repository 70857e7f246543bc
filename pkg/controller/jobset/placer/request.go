// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// requestOf returns the request of a set for domains of its unplaced Jobs.
func (v *view) requestOf(js *jobsetv1alpha2.JobSet, unplaced []domains.Unplaced) (placement.Request, error) {
	request := placement.Request{Set: placement.NameOf(cache.MetaObjectToName(js).String()), Created: js.CreationTimestamp,
		Levels: levelsOf(js)}
	places := make(map[string]int, len(js.Spec.ReplicatedJobs))
	first := int32(0)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		group := placement.Group{Name: placement.NameOf(rj.Name), DependsOn: dependenciesOf(js, i, places)}
		places[rj.Name] = i
		if n := slices.IndexFunc(unplaced, func(u domains.Unplaced) bool { return u.Place == i }); n >= 0 {
			if err := v.fillGroup(&group, js, rj, unplaced[n], first); err != nil {
				return request, fmt.Errorf("replicatedJob %q: %w", rj.Name, err)
			}
		}
		request.Groups = append(request.Groups, group)
		first += helper.Replicas(rj)
	}
	if len(unplaced) > 0 {
		request.Running = v.runningOf(js, unplaced[0].Running)
	}
	return request, nil
}

// runningOf returns where Jobs of a set run, as their node selectors say.
func (v *view) runningOf(js *jobsetv1alpha2.JobSet, jobs []domains.Running) []placement.Assignment {
	out := make([]placement.Assignment, len(jobs))
	priorities := map[int]int32{}
	for i, job := range jobs {
		rj := &js.Spec.ReplicatedJobs[job.Place]
		priority, known := priorities[job.Place]
		if !known {
			spec := &rj.Template.Spec.Template.Spec
			priority = v.environment(js.Namespace, spec).PriorityOf(spec)
			priorities[job.Place] = priority
		}
		out[i] = placement.Assignment{
			Set: placement.NameOf(cache.MetaObjectToName(js).String()), Group: placement.NameOf(rj.Name), Job: keyOf(js, rj, job.Index),
			Topology: placement.NameOf(job.Topology), Domain: placement.NameOf(job.Domain), Priority: priority,
		}
	}
	return out
}

func keyOf(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob, index int32) placement.Name {
	return placement.NameOf(helper.JobKey(js.Namespace, helper.JobName(js.Name, rj.Name, index)))
}

// fillGroup adds the Jobs of a replicatedJob.
func (v *view) fillGroup(
	group *placement.Group, js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob, jobs domains.Unplaced, first int32,
) (err error) {
	group.Topology = placement.NameOf(jobs.Topology)
	template := rj.Template.Spec.Template
	if _, found := template.Spec.NodeSelector[jobs.Topology]; found {
		template.Spec.NodeSelector = maps.Clone(template.Spec.NodeSelector)
		delete(template.Spec.NodeSelector, jobs.Topology)
	}
	avoided := plan.AvoidedNodes(js, v.now())
	if len(avoided) > 0 {
		template.Spec.Affinity = plan.KeptOff(template.Spec.Affinity, avoided)
	}
	if group.Shape, err = placement.NewShape(&template, v.environment(js.Namespace, &template.Spec)); err != nil {
		return err
	}
	group.Pods = podsOf(rj)
	before := storedEntry(&js.Status, rj.Name, jobs.Topology)
	for _, index := range jobs.Indexes {
		job := placement.Job{Key: keyOf(js, rj, index), Index: first + index}
		if before != nil && int(index) < len(before.Jobs) {
			domain := before.Jobs[index].Domain
			// The Job stays in the domain without the nodes that it avoids, if the rest of it is large enough.
			job.Previous, job.PreviousNodes = placement.NameOf(domain), before.Jobs[index].Nodes-v.nodesIn(avoided, jobs.Topology, domain)
		}
		group.Jobs = append(group.Jobs, job)
	}
	return nil
}

// nodesIn returns how many of the nodes are in a domain.
func (v *view) nodesIn(nodes []string, topology, domain string) (n int32) {
	label := placement.Label{Key: placement.NameOf(topology), Value: placement.NameOf(domain)}
	for _, name := range nodes {
		if obj, err := v.nodes.GetByKey(name); err == nil && obj != nil {
			if node, ok := obj.(*watchedNode); ok && slices.Contains(node.Labels, label) {
				n++
			}
		}
	}
	return n
}

// podsOf returns how many pods a Job of the replicatedJob runs at once.
func podsOf(rj *jobsetv1alpha2.ReplicatedJob) int32 {
	parallelism := ptr.Deref(rj.Template.Spec.Parallelism, 1)
	if completions := rj.Template.Spec.Completions; completions != nil {
		return min(parallelism, *completions)
	}
	return parallelism
}

// storedEntry returns where the Jobs of a replicatedJob ran last, in whatever attempt; nil if that is not known.
func storedEntry(status *jobsetv1alpha2.JobSetStatus, name, topology string) *jobsetv1alpha2.ReplicatedJobPlacement {
	if status.Placement == nil {
		return nil
	}
	for i := range status.Placement.ReplicatedJobs {
		if entry := &status.Placement.ReplicatedJobs[i]; entry.Name == name && entry.TopologyKey == topology {
			return entry
		}
	}
	return nil
}

// dependenciesOf returns what the replicatedJob at a place waits for. places has the places of earlier replicatedJobs by name.
func dependenciesOf(js *jobsetv1alpha2.JobSet, place int, places map[string]int) (out []placement.Dependency) {
	if policy := js.Spec.StartupPolicy; place > 0 && policy != nil && policy.StartupPolicyOrder == jobsetv1alpha2.InOrder {
		out = append(out, placement.Dependency{Group: place - 1})
	}
	for _, on := range js.Spec.ReplicatedJobs[place].DependsOn {
		if group, found := places[on.Name]; found {
			out = append(out, placement.Dependency{Group: group, Complete: on.Status == jobsetv1alpha2.DependencyComplete})
		}
	}
	return out
}

// levelsOf returns the labels of nodes that domains lie in as few values of as possible.
func levelsOf(js *jobsetv1alpha2.JobSet) (out []placement.Name) {
	for level := range strings.SplitSeq(js.Annotations[jobsetv1alpha2.PlacementLevelsKey], ",") {
		if level = strings.TrimSpace(level); level != "" && len(out) < jobsetv1alpha2.MaxPlacementLevels {
			out = append(out, placement.NameOf(level))
		}
	}
	return out
}

// assignments returns those that a placement of a set holds. Jobs whose domain the scheduler chose are known by their pods.
func assignments(key cache.ObjectName, at *jobsetv1alpha2.Placement) (out []placement.Assignment) {
	set := placement.NameOf(key.String())
	for i := range at.ReplicatedJobs {
		rj := &at.ReplicatedJobs[i]
		group, topology := placement.NameOf(rj.Name), placement.NameOf(rj.TopologyKey)
		for index, job := range rj.Jobs {
			if job.Domain == "" {
				continue
			}
			out = append(out, placement.Assignment{
				Set: set, Group: group, Job: placement.NameOf(helper.JobKey(key.Namespace, helper.JobName(key.Name, rj.Name, index))),
				Topology: topology, Domain: placement.NameOf(job.Domain), Priority: rj.Priority, Nodes: job.Nodes,
			})
		}
	}
	return out
}

// placementFrom returns the next placement of a set: what it has, and the assignments of its unplaced Jobs, which come in the order of the
// request. Without assignments the scheduler chooses.
func placementFrom(js *jobsetv1alpha2.JobSet, request placement.Request, unplaced []domains.Unplaced,
	assigned []placement.Assignment) *jobsetv1alpha2.Placement {
	next := &jobsetv1alpha2.Placement{Restarts: js.Status.Restarts}
	n := 0
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		topology := helper.ExclusiveTopology(js, rj)
		if topology == "" {
			continue
		}
		current := helper.PlacementOf(&js.Status, rj.Name, topology)
		at := slices.IndexFunc(unplaced, func(u domains.Unplaced) bool { return u.Place == i })
		if current == nil && at < 0 {
			continue // its Jobs run, and nothing says where
		}
		entry := jobsetv1alpha2.ReplicatedJobPlacement{Name: rj.Name, TopologyKey: topology, Jobs: make([]jobsetv1alpha2.JobPlacement,
			helper.Replicas(rj))}
		if current != nil {
			copy(entry.Jobs, current.Jobs)
			entry.Priority = current.Priority
		}
		if at >= 0 {
			entry.Priority = request.Groups[i].Shape.Priority()
			for k, index := range unplaced[at].Indexes {
				entry.Jobs[index] = jobsetv1alpha2.JobPlacement{Restarts: unplaced[at].Restarts[k]}
				if n < len(assigned) {
					entry.Jobs[index].Domain, entry.Jobs[index].Nodes = assigned[n].Domain.String(), assigned[n].Nodes
				}
				n++
			}
		}
		next.ReplicatedJobs = append(next.ReplicatedJobs, entry)
	}
	return next
}
