// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

func TestCoordinator(t *testing.T) {
	set := func(job string, jobIndex, podIndex int32, more ...func(*jobset.JobSet)) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) {
			js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: job, JobIndex: jobIndex, PodIndex: podIndex}
			for _, f := range more {
				f(js)
			}
		}
	}
	const (
		indexed = "must be a replicatedJob with completionMode Indexed, because only its pods have a stable DNS name"
		counted = `must be a replicatedJob whose number of pods is known: set completions in the template of "workers", for example to 4`
	)
	runRules(t, map[string]ruleCase{
		"3.4-8a an unknown replicatedJob": {
			change: set("nobody", 0, 0),
			want:   only("spec.coordinator.replicatedJob", invalid, target),
		},
		"3.4-8b a negative Job index": {
			change: set("workers", -1, 0),
			want:   only("spec.coordinator.jobIndex", invalid, `must be from 0 to 1, because "workers" has replicas: 2`),
		},
		"3.4-8b a Job index beyond the replicas": {
			change: set("workers", 2, 0),
			want:   only("spec.coordinator.jobIndex", invalid, `must be from 0 to 1, because "workers" has replicas: 2`),
		},
		"3.4-8c a NonIndexed replicatedJob": {
			change: set("workers", 0, 0, func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
			}),
			want: only("spec.coordinator.replicatedJob", invalid, indexed),
		},
		"3.4-8c no completions": {
			change: set("workers", 0, 0, func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Template.Spec.Completions = nil }),
			want:   only("spec.coordinator.replicatedJob", invalid, counted),
		},
		"3.4-8d a negative pod index": {
			change: set("workers", 0, -1),
			want:   only("spec.coordinator.podIndex", invalid, `must be from 0 to 3, because "workers" has completions: 4`),
		},
		"3.4-8d a pod index beyond the completions": {
			change: set("workers", 0, 4),
			want:   only("spec.coordinator.podIndex", invalid, `must be from 0 to 3, because "workers" has completions: 4`),
		},
		"3.4-8e a label of 63 characters passes, the default subdomain counted": {
			change: set("w", 0, 0, func(js *jobset.JobSet) {
				c := js.Spec.Coordinator
				namedSet(28, 1, 1)(js)
				js.Spec.Coordinator = c
			}),
		},
		"3.4-8e a label of 65 characters": {
			change: set("w", 0, 0, func(js *jobset.JobSet) {
				c := js.Spec.Coordinator
				namedSet(29, 1, 1)(js)
				js.Spec.Coordinator = c
			}),
			want: only("spec.coordinator", invalid, coordinatorTooLong(65)),
		},
		"3.4-8a 3.4-8e both are reported": {
			change: set("nobody", 0, 0, func(js *jobset.JobSet) { js.Spec.Network.Subdomain = strings.Repeat("a", 50) }),
			want: []refusal{
				{"spec.coordinator.replicatedJob", invalid, target},
				{"spec.coordinator", invalid, coordinatorTooLong(67)},
			},
		},
		"3.4-8e a replicatedJob that makes no label": {
			change: set("wörk", 0, 0),
			want: []refusal{
				{"spec.coordinator.replicatedJob", invalid, target},
			},
		},
	})
}

func coordinatorTooLong(length int) string {
	return fmt.Sprintf("the DNS name of the coordinator must have at most 63 characters, because it is the value of a label; it has %d: shorten metadata.name, the name of the replicatedJob or spec.network.subdomain", length)
}
