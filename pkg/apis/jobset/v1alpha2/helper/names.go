// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"crypto/sha1" //nolint:gosec // a name that clients know, not a secret
	"encoding/hex"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Replicas returns the number of Jobs of a replicatedJob.
func Replicas(rj *jobsetv1alpha2.ReplicatedJob) int32 { return ptr.Deref(rj.Replicas, 1) }

// ReplicatedJob returns the replicatedJob of the name; nil if there is none.
func ReplicatedJob(js *jobsetv1alpha2.JobSet, name string) *jobsetv1alpha2.ReplicatedJob {
	for i := range js.Spec.ReplicatedJobs {
		if js.Spec.ReplicatedJobs[i].Name == name {
			return &js.Spec.ReplicatedJobs[i]
		}
	}
	return nil
}

// TotalReplicas returns the number of Jobs of a set.
func TotalReplicas(js *jobsetv1alpha2.JobSet) (n int64) {
	for i := range js.Spec.ReplicatedJobs {
		n += int64(Replicas(&js.Spec.ReplicatedJobs[i]))
	}
	return n
}

// JobName returns the name of a Job of a set.
func JobName[N int | int32](set, replicatedJob string, index N) string {
	return set + "-" + replicatedJob + "-" + strconv.Itoa(int(index)) // for each of very many Jobs
}

// JobKey returns the value of the label JobKey of a Job.
func JobKey(namespace, name string) string {
	sum := sha1.Sum([]byte(namespace + "/" + name)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// GroupName returns the name of the group that a replicatedJob belongs to.
func GroupName(rj *jobsetv1alpha2.ReplicatedJob) string {
	return ptr.Deref(rj.GroupName, jobsetv1alpha2.DefaultGroupName)
}

// ServiceName returns the name of the headless Service that gives the pods of the set their DNS names, or "" if the set
// wants none.
func ServiceName(js *jobsetv1alpha2.JobSet) string {
	if js.Spec.Network == nil || !ptr.Deref(js.Spec.Network.EnableDNSHostnames, false) {
		return ""
	}
	return Subdomain(js)
}

// Subdomain returns the subdomain of the pods of a set, whether or not they have DNS names.
func Subdomain(js *jobsetv1alpha2.JobSet) string {
	if js.Spec.Network != nil && js.Spec.Network.Subdomain != "" {
		return js.Spec.Network.Subdomain
	}
	return js.Name
}

// CoordinatorName returns the DNS name of the coordinator pod of a set, or "" if the set has none.
func CoordinatorName(js *jobsetv1alpha2.JobSet) string {
	c := js.Spec.Coordinator
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s-%d.%s", JobName(js.Name, c.ReplicatedJob, c.JobIndex), c.PodIndex, Subdomain(js))
}

// ClaimName returns the name of the volume claim of a set that is made from the template of the given name.
func ClaimName(set, template string) string { return template + "-" + set }

// ClaimNames returns the names of the volume claims of the set.
func ClaimNames(js *jobsetv1alpha2.JobSet) []string {
	var names []string
	for _, policy := range js.Spec.VolumeClaimPolicies {
		for i := range policy.Templates {
			names = append(names, ClaimName(js.Name, policy.Templates[i].Name))
		}
	}
	return names
}
