// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the rules of worlds about avoided nodes, about Jobs that are created, and about sets at rest.

// checkAvoided checks which nodes the attempt that begins keeps off, and when these are forgotten.
func (r *worldRules) checkAvoided(o plan.Observed, before, after *jobsetv1alpha2.JobSetStatus, known bool) {
	if len(after.Attempts) == 0 || !known {
		return
	}
	a := &after.Attempts[len(after.Attempts)-1]
	old := attemptNumbered(before, a.Number)
	if old == nil {
		old = &jobsetv1alpha2.Attempt{}
	}
	most := max(r.process.counted/10, int(one(r.process.counted == 0)))
	if len(a.AvoidedNodes) > most && len(old.AvoidedNodes) == 0 && !keptFrom(after, a) {
		r.Fail(avoidsFew, "%d of %d nodes", len(a.AvoidedNodes), r.process.counted)
	}
	if a.ForgetTime == nil || old.ForgetTime != nil {
		return
	}
	if a.RequestTime == nil || o.Now.Sub(a.RequestTime.Time) < 5*time.Minute || o.Unschedulable.Pods == 0 {
		r.Fail(forgetsLate, "attempt %d, requested at %s", a.Number, a.RequestTime)
	}
}

// keptFrom reports whether an attempt has the nodes of the one before, because most of its pods stay.
func keptFrom(status *jobsetv1alpha2.JobSetStatus, a *jobsetv1alpha2.Attempt) bool {
	before := attemptNumbered(status, a.Number-1)
	return before != nil && !slices.ContainsFunc(a.AvoidedNodes, func(node jobsetv1alpha2.AvoidedNode) bool {
		return !slices.ContainsFunc(before.AvoidedNodes, func(other jobsetv1alpha2.AvoidedNode) bool { return other.Name == node.Name })
	})
}

// created checks a Job that is created or resumed.
func (r *worldRules) created(o plan.Observed, job *batchv1.Job) {
	at, _ := placeOf(job)
	key := topologyOf(o.JobSet, at.replicatedJob)
	spec := &job.Spec.Template.Spec
	if !jobIsSuspended(job) && key != "" {
		r.checkPlace(o, job, at, key)
	}
	a := inAttempt(&o.JobSet.Status)
	if a == nil || a.ForgetTime != nil || jobIsSuspended(job) {
		return
	}
	for _, avoided := range a.AvoidedNodes {
		probe := &corev1.Node{}
		probe.Labels = map[string]string{corev1.LabelHostname: avoided.Name}
		if avoided.Until.After(o.Now.Time) && selects(&corev1.PodSpec{Affinity: spec.Affinity}, probe) {
			r.Fail(avoidsInPods, "job %s and node %s", job.Name, avoided.Name)
		}
	}
}

// checkPlace checks that a Job is where the status says, or leaves that to the scheduler.
func (r *worldRules) checkPlace(o plan.Observed, job *batchv1.Job, at place, key string) {
	domain, found := storedDomain(&o.JobSet.Status, at, key)
	affinity := job.Spec.Template.Spec.Affinity
	switch {
	case !found:
		r.Fail(createdInPlace, "job %s has no place", job.Name)
	case domain == "":
		if affinity == nil || affinity.PodAffinity == nil {
			r.Fail(createdInPlace, "job %s has neither a domain nor affinity", job.Name)
		}
	case job.Spec.Template.Spec.NodeSelector[key] != domain:
		r.Fail(createdInPlace, "job %s goes to %v, its domain is %s", job.Name, job.Spec.Template.Spec.NodeSelector, domain)
	}
}

// storedDomain returns the domain that a status has for a Job, and whether it has a place for it at all.
func storedDomain(status *jobsetv1alpha2.JobSetStatus, at place, key string) (domain string, found bool) {
	if status.Placement == nil || status.Placement.Restarts != status.Restarts {
		return "", false
	}
	for _, rj := range status.Placement.ReplicatedJobs {
		if rj.Name == at.replicatedJob && rj.TopologyKey == key && int(at.index) < len(rj.Jobs) {
			domain, found = rj.Jobs[at.index].Domain, true
		}
	}
	return domain, found
}

// givenTwice reports whether two sets that have not finished hold a node both.
func (r *worldRules) givenTwice() bool {
	holder := map[string]string{}
	twice := false
	for _, js := range r.sets.Objects {
		if !holdsPlaces(js) {
			continue
		}
		eachPlace(js.Status.Placement, func(at place2) {
			for _, node := range r.nodes.Objects {
				if node.Labels[at.topology] == at.Domain {
					twice = twice || holder[node.Name] != "" && holder[node.Name] != js.Name
					holder[node.Name] = js.Name
				}
			}
		})
	}
	return twice
}

// isByScheduler reports whether the scheduler chose the domain of a Job.
func (r *worldRules) isByScheduler(js *jobsetv1alpha2.JobSet, at place2) bool {
	job, found := r.jobs.Get(fmt.Sprintf("%s-%s-%d", js.Name, at.replicatedJob, at.index))
	return found && job.Annotations[jobsetv1alpha2.PlacementKey] == jobsetv1alpha2.PlacementByAffinity
}

// runsUnplaced reports whether a Job of an unfinished set runs in a domain although the set has no place for it.
func (r *worldRules) runsUnplaced() bool {
	return slices.ContainsFunc(r.jobs.Objects, func(job *batchv1.Job) bool {
		js := r.setOf(job)
		at, ok := placeOf(job)
		if js == nil || !ok || jobIsSuspended(job) || finished(&js.Status) {
			return false
		}
		key := topologyOf(js, at.replicatedJob)
		_, placed := storedDomain(&js.Status, at, key)
		return key != "" && !placed && job.Spec.Template.Spec.NodeSelector[key] != ""
	})
}

// sharedByScheduler reports whether two Jobs of unfinished sets hold one domain, which the scheduler chose for one of them.
func (r *worldRules) sharedByScheduler() bool {
	return slices.ContainsFunc(r.sets.Objects, func(js *jobsetv1alpha2.JobSet) bool {
		return holdsPlaces(js) && slices.ContainsFunc(r.sets.Objects, func(other *jobsetv1alpha2.JobSet) bool {
			return holdsPlaces(other) && r.shareByScheduler(js, other)
		})
	})
}

// shareByScheduler reports whether Jobs of two sets do so.
func (r *worldRules) shareByScheduler(js, other *jobsetv1alpha2.JobSet) (share bool) {
	eachPlace(js.Status.Placement, func(a place2) {
		if a.Domain == "" || !r.isByScheduler(js, a) {
			return
		}
		eachPlace(other.Status.Placement, func(b place2) {
			share = share || a.topology == b.topology && a.Domain == b.Domain && (js != other || !mayShare(js, a, b))
		})
	})
	return share
}

// isTooSmall reports whether a Job of an unfinished set has a domain in which its pods would not fit if it was empty, while sets hold nodes of
// each domain in which they would.
func (r *worldRules) isTooSmall() (small bool) {
	held := r.heldNodes()
	for _, js := range r.sets.Objects {
		if !holdsPlaces(js) {
			continue
		}
		eachPlace(js.Status.Placement, func(at place2) {
			template := &replicatedJob(js, at.replicatedJob).Template.Spec
			room, taken := map[string]int64{}, map[string]bool{}
			for _, node := range r.nodes.Objects {
				domain := node.Labels[at.topology]
				room[domain] += coresOfNode / cpuOf(&corev1.Pod{Spec: template.Template.Spec})
				taken[domain] = taken[domain] || held[node.Name]
			}
			fits := func(domain string) bool { return room[domain] >= int64(*template.Parallelism) }
			free := false
			for domain := range room {
				free = free || fits(domain) && !taken[domain]
			}
			small = small || !fits(at.Domain) && !free
		})
	}
	return small
}

// heldNodes returns the nodes of the domains that unfinished sets hold.
func (r *worldRules) heldNodes() map[string]bool {
	held := map[string]bool{}
	for _, js := range r.sets.Objects {
		if !holdsPlaces(js) {
			continue
		}
		eachPlace(js.Status.Placement, func(at place2) {
			for _, node := range r.nodes.Objects {
				held[node.Name] = held[node.Name] || node.Labels[at.topology] == at.Domain
			}
		})
	}
	return held
}

// atRest checks suspended sets once nothing fails any more.
func (r *worldRules) atRest() {
	for _, js := range r.sets.Objects {
		if !isSuspended(js) || finished(&js.Status) {
			continue
		}
		r.Seen["sets at rest suspended"]++
		if js.Status.Placement != nil {
			r.Fail(suspendedHoldNone, "%s%s", js.Name, describePlacement(&js.Status))
		}
		for _, job := range r.ownJobs(js) {
			if len(r.podsOf(job)) > 0 && !ended(job) {
				r.Fail(suspendedHoldNone, "pods of job %s", job.Name)
			}
		}
	}
}
