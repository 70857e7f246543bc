// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// SetDefaults_DisaggregatedRoleSpec fills in what the schema of LeaderWorkerSets fills in. What their webhook fills in
// stays absent: a role without a rolloutStrategy is rolled with a surge of one group, and its LeaderWorkerSets get the
// rest when they are created.
// +k8s:defaulter-gen=covers
func SetDefaults_DisaggregatedRoleSpec(r *DisaggregatedRoleSpec) {
	if r.Scaling != nil && r.Scaling.Mode == "" {
		r.Scaling.Mode = RoleScalingStatic
	}
	spec := &r.Spec
	if spec.Replicas == nil {
		spec.Replicas = ptr.To[int32](1)
	}
	if spec.StartupPolicy == "" {
		spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderCreated
	}
	leaderworkersetv1.SetDefaults_LeaderWorkerTemplate(&spec.LeaderWorkerTemplate)
	if c := spec.RolloutStrategy.RollingUpdateConfiguration; c != nil {
		leaderworkersetv1.SetDefaults_RolloutStrategy(&spec.RolloutStrategy)
		leaderworkersetv1.SetDefaults_RollingUpdateConfiguration(c)
	}
	if n := spec.NetworkConfig; n != nil && n.SubdomainPolicy == nil {
		n.SubdomainPolicy = ptr.To(leaderworkersetv1.SubdomainShared)
	}
	if b := spec.GroupRestartBackoff; b != nil {
		leaderworkersetv1.SetDefaults_GroupRestartBackoff(b)
	}
}
