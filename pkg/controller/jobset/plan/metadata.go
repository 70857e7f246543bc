// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// position is the place of a replicatedJob in its set.
type position struct {
	// first is the number of Jobs of the set before its own.
	first int64
	// firstInGroup and inGroup are the number of Jobs of its group before its own, and at all.
	firstInGroup, inGroup int64
	// all is the number of Jobs of the set.
	all int64
}

// positions returns the place of every replicatedJob of the spec.
func positions(js *jobsetv1alpha2.JobSet) []position {
	out := make([]position, len(js.Spec.ReplicatedJobs))
	groups := map[string]int64{}
	var all int64
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		out[i].first, out[i].firstInGroup = all, groups[helper.GroupName(rj)]
		all += int64(helper.Replicas(rj))
		groups[helper.GroupName(rj)] += int64(helper.Replicas(rj))
	}
	for i := range out {
		out[i].all, out[i].inGroup = all, groups[helper.GroupName(&js.Spec.ReplicatedJobs[i])]
	}
	return out
}

// identity returns the keys that tell a Job and its pods who they are (docs/reference/jobset.md#identity-keys). They are labels and
// as a rule annotations alike, see annotated, and stay as they are for the life of the Job.
func identity(o Observed, rj *jobsetv1alpha2.ReplicatedJob, at position, index int32) map[string]string {
	js := o.JobSet
	keys := map[string]string{
		jobsetv1alpha2.JobSetNameKey:         js.Name,
		jobsetv1alpha2.JobSetUIDKey:          string(js.UID),
		jobsetv1alpha2.ReplicatedJobNameKey:  rj.Name,
		jobsetv1alpha2.ReplicatedJobReplicas: itoa(helper.Replicas(rj)),
		jobsetv1alpha2.GlobalReplicasKey:     itoa(at.all),
		jobsetv1alpha2.RestartsKey:           itoa(js.Status.Restarts),
		jobsetv1alpha2.JobIndexKey:           itoa(index),
		jobsetv1alpha2.JobGlobalIndexKey:     itoa(at.first + int64(index)),
		jobsetv1alpha2.JobKey:                helper.JobKey(js.Namespace, helper.JobName(js.Name, rj.Name, index)),
		jobsetv1alpha2.GroupNameKey:          helper.GroupName(rj),
		jobsetv1alpha2.GroupReplicasKey:      itoa(at.inGroup),
		jobsetv1alpha2.JobGroupIndexKey:      itoa(at.firstInGroup + int64(index)),
	}
	if o.index.tracksJobs {
		_, place := o.replicatedJob(rj.Name)
		keys[jobsetv1alpha2.JobRestartAttemptKey] = itoa(o.jobRestarts(place, index))
	}
	if coordinator := helper.CoordinatorName(js); coordinator != "" {
		keys[jobsetv1alpha2.CoordinatorKey] = coordinator
	}
	return keys
}

// executionKeys returns the annotation that tells a Job and its pods in which execution of the set they run, if executions
// are counted.
func executionKeys(o Observed) map[string]string {
	if !o.Gates.ExecutionAttemptsTracking || o.JobSet.Status.ExecutionAttempts == nil {
		return nil
	}
	return map[string]string{jobsetv1alpha2.ExecutionAttemptKey: itoa(*o.JobSet.Status.ExecutionAttempts)}
}

// releaseKeys returns the annotation of a Job that may run from now on.
func releaseKeys(js *jobsetv1alpha2.JobSet) map[string]string {
	if suspended(js) {
		return nil
	}
	return map[string]string{jobsetv1alpha2.ReleasedKey: released(js)}
}

func released(js *jobsetv1alpha2.JobSet) string { return strconv.FormatInt(js.Generation, 10) }

func itoa[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
