// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inplace has what decisions about sets are made of whose pods restart where they are: which sets these are, and how far
// their pods have come.
package inplace

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Restarts reports whether decisions about the set depend on its pods.
func Restarts(js *jobsetv1alpha2.JobSet, g gates.Gates) bool {
	policy := js.Spec.FailurePolicy
	return g.InPlaceRestart && policy != nil && policy.RestartStrategy == jobsetv1alpha2.RestartStrategyInPlaceRestart
}

// State is how far the pods of one Job have come with restarting where they are.
type State struct {
	// Pods is the number of pods that say which attempt they have reached. Pods that have ended do not count.
	Pods int64
	// Succeeded is the number of pods that have succeeded. They do not restart, and the restart does not wait for them.
	Succeeded int64
	// Lowest and Highest are the attempts that they have reached.
	Lowest, Highest int32
	// First is the name of the pod that was the first to reach Highest, and Order is its place among those of all Jobs.
	First string
	Order uint64
	// ContainerRestarts is the largest number of restarts of a container, pods that have failed included.
	ContainerRestarts int32
	// Problems are pods that say something else than an attempt, one sentence each, sorted by pod.
	Problems []string
}

// Add adds the pods of another Job.
func (s *State) Add(other State) {
	switch {
	case other.Pods == 0:
	case s.Pods == 0:
		s.Lowest, s.Highest, s.First, s.Order = other.Lowest, other.Highest, other.First, other.Order
	default:
		if other.Highest > s.Highest || other.Highest == s.Highest && other.Order < s.Order {
			s.Highest, s.First, s.Order = other.Highest, other.First, other.Order
		}
		s.Lowest = min(s.Lowest, other.Lowest)
	}
	s.Pods += other.Pods
	s.Succeeded += other.Succeeded
	s.ContainerRestarts = max(s.ContainerRestarts, other.ContainerRestarts)
	s.Problems = append(s.Problems, other.Problems...)
}

// Sum adds up the pods of Jobs of the present attempt. Pods of earlier attempts, which may still be ending, are no part of what
// restarts together.
func Sum(pods map[types.UID]State, present ...[]*batchv1.Job) (all State) {
	for _, jobs := range present {
		for _, job := range jobs {
			its := pods[job.UID]
			its.Succeeded = max(its.Succeeded, int64(job.Status.Succeeded)) // pods may be gone that have succeeded
			all.Add(its)
		}
	}
	slices.Sort(all.Problems)
	return all
}

// Pod names a pod and its Job.
type Pod struct{ Job, Pod string }

// First returns the pod of the present attempt of the set that was the first to restart; nil if none has. What failed in it is the
// first cause of the restart of the others.
func First(js *jobsetv1alpha2.JobSet, jobs []*batchv1.Job, pods map[types.UID]State) *Pod {
	var job string
	var all State
	attempt := strconv.Itoa(int(js.Status.Restarts))
	for _, candidate := range jobs {
		if candidate.Labels[jobsetv1alpha2.RestartsKey] != attempt {
			continue
		}
		its := pods[candidate.UID]
		all.Add(its)
		if its.Pods > 0 && its.Order == all.Order {
			job = candidate.Name
		}
	}
	if all.Highest == 0 {
		return nil
	}
	return &Pod{Job: job, Pod: all.First}
}

// PodsOf returns the number of pods of a set all of whose Jobs run as many pods as they need completions.
func PodsOf(js *jobsetv1alpha2.JobSet) (n int64, err error) {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		spec := rj.Template.Spec
		if spec.Parallelism == nil || !ptr.Equal(spec.Parallelism, spec.Completions) {
			return 0, fmt.Errorf("replicatedJob %q prevents the in-place restart: its completions must be set and equal its parallelism", rj.Name)
		}
		n += int64(helper.Replicas(rj)) * int64(*spec.Parallelism)
	}
	return n, nil
}
