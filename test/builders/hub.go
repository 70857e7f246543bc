// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// Hub returns an internal JobSet, defaulted as a created one is, and applies the changes in order. It has no replicatedJobs
// of its own.
func Hub(name string, change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, ResourceVersion: "1", Generation: 1},
		Spec: jobset.JobSetSpec{
			Network: &jobset.Network{
				EnableDNSHostnames:       ptr.To(true),
				PublishNotReadyAddresses: ptr.To(true),
			},
			SuccessPolicy: &jobset.SuccessPolicy{Operator: jobset.OperatorAll},
			StartupPolicy: &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
		},
	}
	for _, f := range change {
		f(js)
	}
	return js
}

// WithHubJobs adds a replicatedJob of so many Indexed Jobs, each with so many pods, and applies the changes to it.
func WithHubJobs(name string, replicas, pods int32, change ...func(*jobset.ReplicatedJob)) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		rj := jobset.ReplicatedJob{
			Name:      name,
			GroupName: ptr.To(jobset.DefaultGroupName),
			Replicas:  ptr.To(replicas),
			Template:  jobTemplate(pods),
		}
		for _, f := range change {
			f(&rj)
		}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
	}
}
