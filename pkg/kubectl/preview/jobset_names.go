// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// random stands for the five random characters of the name of a pod.
const random = "xxxxx"

// maxRanges is how many ranges of indices a pattern shows.
const maxRanges = 8

// nameReplicatedJob fills in the numbers and names of a replicatedJob. The job is its first; nil if it has none.
func nameReplicatedJob(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob, job *batchv1.Job) ReplicatedJob {
	out := ReplicatedJob{Name: rj.Name}
	for _, d := range rj.DependsOn {
		out.After = append(out.After, d.Name+":"+string(d.Status))
	}
	if job == nil {
		return out
	}
	out.Jobs = int(helper.Replicas(rj))
	pods := int(snapshot.JobSize(job))
	out.Pods = out.Jobs * pods
	out.JobNames = fmt.Sprintf("%s-%s-%s", js.Name, rj.Name, upTo(out.Jobs))
	if pods == 0 {
		return out
	}
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		out.PodNames = out.JobNames + "-" + random
		return out
	}
	indexed := out.JobNames + "-" + upTo(int(ptr.Deref(job.Spec.Completions, 1)))
	out.PodNames = indexed + "-" + random
	if subdomain := job.Spec.Template.Spec.Subdomain; subdomain != "" {
		out.HostNames = indexed + "." + subdomain
	}
	return out
}

// upTo is the pattern of the indices below n.
func upTo(n int) string {
	if n <= 1 {
		return "0"
	}
	return fmt.Sprintf("[0-%d]", n-1)
}

// taken returns the pattern of those names of the replicatedJob that exist, or "".
func taken(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob, exists func(name string) bool) string {
	var indices []int
	for i := range int(helper.Replicas(rj)) {
		if exists(helper.JobName(js.Name, rj.Name, i)) {
			indices = append(indices, i)
		}
	}
	switch len(indices) {
	case 0:
		return ""
	case 1:
		return helper.JobName(js.Name, rj.Name, indices[0])
	}
	return fmt.Sprintf("%s-%s-[%s]", js.Name, rj.Name, ranges(indices))
}

// ranges joins ascending numbers, like 0-3,7.
func ranges(numbers []int) string {
	var parts []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+n {
			n++
		}
		part := fmt.Sprint(numbers[0])
		if n > 1 {
			part += fmt.Sprintf("-%d", numbers[n-1])
		}
		parts, numbers = append(parts, part), numbers[n:]
	}
	if len(parts) > maxRanges {
		parts = slices.Concat(parts[:maxRanges], []string{"..."})
	}
	return strings.Join(parts, ",")
}
