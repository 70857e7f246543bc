// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	defaultBaseSeconds = 10
	defaultMaxSeconds  = 300
)

// The functions below are the defaults of docs/reference/leaderworkerset.md#defaults. They run on every decoded object, stored ones
// included, so that a field that an update removes has its default again.

// SetDefaults_LeaderWorkerSetSpec fills in sections that are absent as a whole.
func SetDefaults_LeaderWorkerSetSpec(s *LeaderWorkerSetSpec) {
	if s.StartupPolicy == "" {
		s.StartupPolicy = StartupPolicyLeaderCreated
	}
	if s.NetworkConfig == nil {
		s.NetworkConfig = &NetworkConfig{}
	}
}

// SetDefaults_LeaderWorkerTemplate fills in what the schema fills in, in the templates too. It covers all that is below, because the
// generated defaults of pods know more: two constants of azureDisk, which the published schema does not have. They would change the
// keys of revisions.
// +k8s:defaulter-gen=covers
func SetDefaults_LeaderWorkerTemplate(t *LeaderWorkerTemplate) {
	if t.GroupSize == nil {
		t.GroupSize = ptr.To[int32](1)
	}
	if t.RestartPolicy == "" {
		t.RestartPolicy = RestartPolicyRecreateGroupOnPodRestart
	}
	if t.SubGroupPolicy != nil && t.SubGroupPolicy.Type == nil {
		t.SubGroupPolicy.Type = ptr.To(SubGroupPolicyLeaderWorker)
	}
	setPodDefaults(&t.WorkerTemplate.Spec)
	if t.LeaderTemplate != nil {
		setPodDefaults(&t.LeaderTemplate.Spec)
	}
}

// SetDefaults_RolloutStrategy fills in the type, and the parameters of a rolling update.
func SetDefaults_RolloutStrategy(s *RolloutStrategy) {
	if s.Type == "" {
		s.Type = RolloutStrategyRollingUpdate
	}
	if s.Type == RolloutStrategyRollingUpdate && s.RollingUpdateConfiguration == nil {
		s.RollingUpdateConfiguration = &RollingUpdateConfiguration{}
	}
}

// SetDefaults_RollingUpdateConfiguration fills in each parameter by itself. An explicit 0 stays.
func SetDefaults_RollingUpdateConfiguration(c *RollingUpdateConfiguration) {
	if c.Partition == nil {
		c.Partition = ptr.To[int32](0)
	}
	if c.MaxUnavailable == nil {
		c.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	if c.MaxSurge == nil {
		c.MaxSurge = ptr.To(intstr.FromInt32(0))
	}
}

// SetDefaults_GroupRestartBackoff fills in the delays. The longest one is never shorter than the first one.
func SetDefaults_GroupRestartBackoff(b *GroupRestartBackoff) {
	if b.BaseSeconds == nil {
		b.BaseSeconds = ptr.To[int32](defaultBaseSeconds)
	}
	if b.MaxSeconds == nil {
		b.MaxSeconds = ptr.To(max(*b.BaseSeconds, defaultMaxSeconds))
	}
}
