// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// startOrder is how far an ordered start is.
type startOrder int

const (
	// orderNone means that the set has no ordered start.
	orderNone startOrder = iota
	// orderWaiting means that the start waits for a replicatedJob.
	orderWaiting
	// orderDone means that all replicatedJobs have started.
	orderDone
)

// orderOf returns how far an ordered start is, and the position of the replicatedJob that it waits for.
func orderOf(s state) (order startOrder, waitsFor int) {
	if policy := s.JobSet.Spec.StartupPolicy; policy == nil || policy.StartupPolicyOrder != jobsetv1alpha2.InOrder {
		return orderNone, 0
	}
	for i := range s.owned.counts {
		if !started(s.owned.counts[i], &s.JobSet.Spec.ReplicatedJobs[i]) {
			return orderWaiting, i
		}
	}
	return orderDone, 0
}

// awaitTurn returns which Jobs wait for their turn in an ordered start, and the conditions of that start
// (docs/reference/jobset.md#startup-order). It does not hold back the creation of suspended Jobs.
func awaitTurn(s state) wait {
	order, waitsFor := orderOf(s)
	w := wait{reason: awaitsTurn, changes: startup(s.Observed, order)}
	if order == orderWaiting && !suspended(s.JobSet) {
		for i := waitsFor + 1; i < len(s.owned.counts); i++ {
			w.replicatedJobs = append(w.replicatedJobs, i)
		}
	}
	return w
}

// awaitDependencies returns which Jobs wait for the replicatedJobs that their own depends on (docs/reference/jobset.md#startup-order). It
// holds back the creation of suspended Jobs, too.
func awaitDependencies(s state) wait {
	w := wait{reason: awaitsDependencies}
	for i := range s.owned.counts {
		if !dependenciesMet(s.Observed, s.owned.counts, &s.JobSet.Spec.ReplicatedJobs[i]) {
			w.replicatedJobs = append(w.replicatedJobs, i)
		}
	}
	return w
}

func dependenciesMet(o Observed, counts []jobsetv1alpha2.ReplicatedJobStatus, rj *jobsetv1alpha2.ReplicatedJob) bool {
	for _, dependency := range rj.DependsOn {
		on, place := o.replicatedJob(dependency.Name)
		if on == nil || !dependencyMet(counts[place], on, dependency.Status) {
			return false
		}
	}
	return true
}

func dependencyMet(count jobsetv1alpha2.ReplicatedJobStatus, on *jobsetv1alpha2.ReplicatedJob, status jobsetv1alpha2.DependsOnStatus) bool {
	if status == jobsetv1alpha2.DependencyComplete {
		return count.Succeeded == helper.Replicas(on)
	}
	return started(count, on)
}

// started reports whether every Job of the replicatedJob is ready or has ended.
func started(count jobsetv1alpha2.ReplicatedJobStatus, rj *jobsetv1alpha2.ReplicatedJob) bool {
	return count.Ready+count.Succeeded+count.Failed == helper.Replicas(rj)
}
