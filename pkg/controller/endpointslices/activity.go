// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"k8s.io/apimachinery/pkg/api/meta"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// A set in the mode auto has its addresses written by us only while many of its pods come and go. That follows from its spec and status
// alone, not from pods: a set at rest costs nothing. Counts of Jobs say how many pods are missing at least. They are stored up to five
// seconds late, and a Job with many pods is not ready if one of them is not. Attempts say at once that the set, or a part of it, starts
// from the beginning, and when it has first been up.

const (
	// largeSet is the number of pods from which on a set can have so many changes that it is worth a change of the writer.
	largeSet = 100
	// manyParts is the part of all pods that are many.
	manyParts = 4
)

// activity is how many pods of a set come and go. It changes a few times in the life of a set, however often its status does.
type activity int8

const (
	// unmeasured means that the set is small, or that its mode is not auto.
	unmeasured activity = iota
	// over means that the set has finished, and runs no more pods.
	over
	// atRest means that all Jobs are up, or that the set is suspended and none has pods.
	atRest
	// fewMove means that up to a quarter of the pods come and go. It keeps the writer: single pods may fail again and again.
	fewMove
	// manyMove means that more pods do.
	manyMove
)

// activityOf returns how many pods of a set that runs so many at the same time come and go.
func activityOf(js *jobsetv1alpha2.JobSet, pods int) activity {
	if pods < largeSet {
		return unmeasured
	}
	finished, _ := helper.Finished(js)
	stops, moving := finished != "" || helper.Suspended(js), 0
	if stops {
		moving = podsOfActive(js)
	} else {
		moving = podsThatStart(js, pods)
	}
	switch {
	case moving*manyParts > pods:
		return manyMove
	case moving > 0:
		return fewMove
	case finished != "":
		return over
	}
	return atRest
}

// podsOfActive returns the number of pods of Jobs that are active in a set that stops. Until the attempt has ended, there is one at least:
// counts of a set that is suspended soon after its start may not be stored yet.
func podsOfActive(js *jobsetv1alpha2.JobSet) (pods int) {
	active := make(map[string]int32, len(js.Status.ReplicatedJobsStatus))
	for i := range js.Status.ReplicatedJobsStatus {
		active[js.Status.ReplicatedJobsStatus[i].Name] = js.Status.ReplicatedJobsStatus[i].Active
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		pods += int(active[rj.Name]) * podsOfJob(rj)
	}
	if helper.RunningAttempt(&js.Status) != nil {
		return max(pods, 1)
	}
	return pods
}

// podsThatStart returns how many pods of a set that runs are to come, at least.
func podsThatStart(js *jobsetv1alpha2.JobSet, pods int) int {
	counts := helper.CountJobs(js)
	missing := int(max(counts.Wanted-counts.Up, 0)) // each Job that is not up lacks a pod
	last := helper.CurrentAttempt(&js.Status)
	switch {
	case meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetRestarting):
		return pods
	case last == nil && counts.Seen == 0:
		return pods // it is new
	case last == nil:
		// The server keeps no history. How much of a Job is missing is not known.
		return missing * pods / int(max(counts.Wanted, 1))
	case last.EndTime != nil:
		return pods // it is resumed
	case last.ReadyTime != nil:
		return missing
	}
	return max(missing, podsOfAttempt(js, last, pods))
}

// podsOfAttempt returns the number of pods that an attempt starts.
func podsOfAttempt(js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt, pods int) int {
	rj := helper.ReplicatedJob(js, a.ReplicatedJob)
	switch {
	case a.Scope == jobsetv1alpha2.ScopeJob && rj != nil:
		return podsOfJob(rj)
	case a.Scope == jobsetv1alpha2.ScopeReplicatedJob && rj != nil:
		return int(helper.Replicas(rj)) * podsOfJob(rj)
	}
	return pods
}
