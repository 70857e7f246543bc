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

// startable reports for every replicatedJob of the spec whether its Jobs may be created and resumed
// (docs/reference/jobset.md#startup-order).
//
// Dependencies hold back also the creation of suspended Jobs; an ordered start does not.
func startable(o Observed, counts []jobsetv1alpha2.ReplicatedJobStatus) ([]bool, startOrder) {
	jobs := o.JobSet.Spec.ReplicatedJobs
	open := make([]bool, len(jobs))
	order := orderNone
	if policy := o.JobSet.Spec.StartupPolicy; policy != nil && policy.StartupPolicyOrder == jobsetv1alpha2.InOrder {
		order = orderDone
	}
	for i := range jobs {
		open[i] = dependenciesMet(o, counts, &jobs[i]) && (order != orderWaiting || suspended(o.JobSet))
		if order == orderDone && !started(counts[i], &jobs[i]) {
			order = orderWaiting
		}
	}
	return open, order
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
