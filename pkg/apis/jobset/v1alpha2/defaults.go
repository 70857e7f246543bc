// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import "k8s.io/utils/ptr"

// DefaultGroupName is the groupName of a replicatedJob that names none.
const DefaultGroupName = "default"

// The functions below are the defaults of the published schema (docs/reference/jobset.md#defaults). They run on every decoded object,
// stored ones included. What upstream's mutating webhook fills in on create only is done by the create strategy,
// so that an update which removes such a field is seen as a removal.

// SetDefaults_ReplicatedJob fills in groupName and replicas where they are absent; an explicit empty name or 0 stays.
func SetDefaults_ReplicatedJob(rj *ReplicatedJob) {
	if rj.GroupName == nil {
		rj.GroupName = ptr.To(DefaultGroupName)
	}
	if rj.Replicas == nil {
		rj.Replicas = ptr.To[int32](1)
	}
}

// SetDefaults_FailurePolicy fills in the restart strategy.
func SetDefaults_FailurePolicy(p *FailurePolicy) {
	if p.RestartStrategy == "" {
		p.RestartStrategy = RestartStrategyRecreate
	}
}

// SetDefaults_VolumeRetentionPolicy fills in whenDeleted.
func SetDefaults_VolumeRetentionPolicy(p *VolumeRetentionPolicy) {
	if p.WhenDeleted == nil {
		p.WhenDeleted = ptr.To(RetentionPolicyDelete)
	}
}
