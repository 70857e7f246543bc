// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// quotaReclaimed says that Kueue has given the quota of pods to others that run again after a restart. Kueue takes the
// quota of pods back that have succeeded, and refuses its own attempt to give it to the set again; until then it also
// fails to suspend the set (docs/kueue.md#restarts-after-a-job-has-succeeded).
func quotaReclaimed(e *Evidence) []string {
	if e.Kueue.Workload == nil || finished(e.JobSet) {
		return nil
	}
	reclaimed, _, _ := unstructured.NestedSlice(e.Kueue.Workload.Object, "status", "reclaimablePods")
	missing := int64(0)
	for _, entry := range reclaimed {
		podSet, _ := entry.(map[string]any)
		name, _ := podSet["name"].(string)
		pods, _ := podSet["count"].(int64)
		missing += max(0, pods-podsSucceeded(e.JobSet, name))
	}
	if missing == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Kueue holds no quota for %s, which had succeeded before a restart, cannot reserve it again, and does not "+
		"suspend the set any more. "+
		"kubectl -n %s delete workload %s makes Kueue admit the set again: the set is suspended until there is quota for all of its pods",
		count(int(missing), "pod"), e.Namespace, e.Kueue.Workload.GetName())}
}

// podsSucceeded returns how many pods of a replicatedJob Kueue takes for succeeded: the pods of its Jobs that have succeeded.
func podsSucceeded(js *jobsetv1alpha2.JobSet, name string) int64 {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if rj.Name != name {
			continue
		}
		spec := &rj.Template.Spec
		pods := ptr.Deref(spec.Parallelism, 1)
		if spec.Completions != nil {
			pods = min(pods, *spec.Completions)
		}
		for j := range js.Status.ReplicatedJobsStatus {
			if status := &js.Status.ReplicatedJobsStatus[j]; status.Name == name {
				return int64(pods) * int64(status.Succeeded)
			}
		}
	}
	return 0
}
