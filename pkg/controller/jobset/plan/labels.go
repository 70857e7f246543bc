// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha1" //nolint:gosec // a name that clients know, not a secret
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
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
		out[i].first, out[i].firstInGroup = all, groups[groupName(rj)]
		all += int64(replicas(rj))
		groups[groupName(rj)] += int64(replicas(rj))
	}
	for i := range out {
		out[i].all, out[i].inGroup = all, groups[groupName(&js.Spec.ReplicatedJobs[i])]
	}
	return out
}

// identity returns the keys that tell a Job and its pods who they are (docs/reference/jobset.md#identity-keys). They are labels and
// annotations alike, and stay as they are for the life of the Job.
func identity(o Observed, rj *jobsetv1alpha2.ReplicatedJob, at position, index int32) map[string]string {
	js := o.JobSet
	keys := map[string]string{
		jobsetv1alpha2.JobSetNameKey:         js.Name,
		jobsetv1alpha2.JobSetUIDKey:          string(js.UID),
		jobsetv1alpha2.ReplicatedJobNameKey:  rj.Name,
		jobsetv1alpha2.ReplicatedJobReplicas: itoa(replicas(rj)),
		jobsetv1alpha2.GlobalReplicasKey:     itoa(at.all),
		jobsetv1alpha2.RestartsKey:           itoa(js.Status.Restarts),
		jobsetv1alpha2.JobIndexKey:           itoa(index),
		jobsetv1alpha2.JobGlobalIndexKey:     itoa(at.first + int64(index)),
		jobsetv1alpha2.JobKey:                jobKey(js.Namespace, jobName(js, rj, index)),
		jobsetv1alpha2.GroupNameKey:          groupName(rj),
		jobsetv1alpha2.GroupReplicasKey:      itoa(at.inGroup),
		jobsetv1alpha2.JobGroupIndexKey:      itoa(at.firstInGroup + int64(index)),
	}
	if o.index.tracksJobs {
		_, place := o.replicatedJob(rj.Name)
		keys[jobsetv1alpha2.JobRestartAttemptKey] = itoa(o.jobRestarts(place, index))
	}
	if c := js.Spec.Coordinator; c != nil {
		keys[jobsetv1alpha2.CoordinatorKey] = fmt.Sprintf("%s-%s-%d-%d.%s", js.Name, c.ReplicatedJob, c.JobIndex, c.PodIndex, subdomain(js))
	}
	return keys
}

// executionKeys returns the annotation that tells a Job and its pods in which execution of the set they run, if executions
// are counted.
func executionKeys(o Observed) map[string]string {
	if !o.Gates.ExecutionAttempts || o.JobSet.Status.ExecutionAttempts == nil {
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

// placement returns the annotations that ask for exclusive placement: those of the set, and over them those of the
// replicatedJob, each key on its own. A level without a topology has no say.
func placement(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob) map[string]string {
	var out map[string]string
	for _, level := range []map[string]string{js.Annotations, rj.Template.Annotations} {
		topology, found := level[jobsetv1alpha2.ExclusiveKey]
		if !found {
			continue
		}
		out = merged(out, map[string]string{jobsetv1alpha2.ExclusiveKey: topology})
		if strategy, found := level[jobsetv1alpha2.NodeSelectorStrategyKey]; found {
			out[jobsetv1alpha2.NodeSelectorStrategyKey] = strategy
		}
	}
	return out
}

func jobName(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob, index int32) string {
	return fmt.Sprintf("%s-%s-%d", js.Name, rj.Name, index)
}

func jobKey(namespace, name string) string {
	sum := sha1.Sum([]byte(namespace + "/" + name)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

func groupName(rj *jobsetv1alpha2.ReplicatedJob) string {
	return ptr.Deref(rj.GroupName, jobsetv1alpha2.DefaultGroupName)
}

// merged returns a new map in which later maps win.
func merged(sources ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, source := range sources {
		maps.Copy(out, source)
	}
	return out
}

func itoa[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
