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
	const indexed = "must be a replicatedJob with completionMode Indexed and with completions set"
	runRules(t, map[string]ruleCase{
		"3.4-8a an unknown replicatedJob": {
			change: set("nobody", 0, 0),
			want:   only("spec.coordinator.replicatedJob", invalid, target),
		},
		"3.4-8b a negative Job index": {
			change: set("workers", -1, 0),
			want:   only("spec.coordinator.jobIndex", invalid, `must be 0 or more and less than the replicas of "workers", 2`),
		},
		"3.4-8b a Job index beyond the replicas": {
			change: set("workers", 2, 0),
			want:   only("spec.coordinator.jobIndex", invalid, `must be 0 or more and less than the replicas of "workers", 2`),
		},
		"3.4-8c a NonIndexed replicatedJob": {
			change: set("workers", 0, 0, func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
			}),
			want: only("spec.coordinator.replicatedJob", invalid, indexed),
		},
		"3.4-8c no completions": {
			change: set("workers", 0, 0, func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Template.Spec.Completions = nil }),
			want:   only("spec.coordinator.replicatedJob", invalid, indexed),
		},
		"3.4-8d a negative pod index": {
			change: set("workers", 0, -1),
			want:   only("spec.coordinator.podIndex", invalid, `must be 0 or more and less than the completions of "workers", 4`),
		},
		"3.4-8d a pod index beyond the completions": {
			change: set("workers", 0, 4),
			want:   only("spec.coordinator.podIndex", invalid, `must be 0 or more and less than the completions of "workers", 4`),
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
				{"spec.coordinator", invalid, "must result in a DNS name that is the value of a label: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
			},
		},
	})
}

func coordinatorTooLong(length int) string {
	return fmt.Sprintf("must result in a DNS name of no more than 63 characters, because it is the value of a label; it has %d: shorten metadata.name, the name of the replicatedJob or spec.network.subdomain", length)
}
