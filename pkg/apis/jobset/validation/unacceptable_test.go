// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// unacceptable gives the workers a Job that no API server accepts.
func unacceptable(js *jobset.JobSet) {
	job := &js.Spec.ReplicatedJobs[1].Template.Spec
	job.BackoffLimit = ptr.To[int32](-1)
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	job.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpu("2"), Limits: cpu("1")}
}

func TestUnacceptableTemplates(t *testing.T) {
	const job = "spec.replicatedJobs[1].template.spec."
	want := []refusal{
		{job + "backoffLimit", invalid, "must be 0 or more"},
		{job + "template.spec.restartPolicy", notSupported, `supported values: "OnFailure", "Never"`},
		{job + "template.spec.containers[0].resources.requests[cpu]", invalid, "must not be greater than the limit, 1"},
	}
	managed := func(name string) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { unacceptable(js); js.Spec.ManagedBy = &name }
	}
	runRules(t, map[string]ruleCase{
		"own a template that no Job can have":                       {change: unacceptable, want: want},
		"own the same, in a set of the built-in controller by name": {change: managed("jobset.sigs.k8s.io/jobset-controller"), want: want},
		"own another controller may make something else of it":      {change: managed("example.com/other")},
	})
	runUpdates(t, map[string]updateCase{
		"ratchet a stored one is suspended": {stored: unacceptable, change: func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) }},
		"ratchet a stored one gets a queue's node selector": {
			stored: func(js *jobset.JobSet) { unacceptable(js); js.Spec.Suspend = ptr.To(true) },
			change: func(js *jobset.JobSet) {
				js.Spec.Suspend = ptr.To(false)
				js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "gpu"}
			},
		},
		"ratchet a limit may not fall below the request while suspended": {
			stored: func(js *jobset.JobSet) {
				js.Spec.Suspend = ptr.To(true)
				js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("1")}
			},
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Resources.Requests = cpu("2")
			},
			opts: gates.Gates{MutablePodResourcesForSuspendedJobSets: true},
			want: only(job+"template.spec.containers[0].resources.requests[cpu]", invalid, "must not be greater than the limit, 1"),
		},
	})
}
