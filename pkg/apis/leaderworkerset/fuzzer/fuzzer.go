// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills LeaderWorkerSets with random values for round-trip tests. Values are such that decoding adds no default. Embedded
// templates stay small, as those of JobSets do.
package fuzzer

import (
	corev1 "k8s.io/api/core/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	jobsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/fuzzer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(codecs runtimeserializer.CodecFactory) []any {
	return append(jobsetfuzzer.Funcs(codecs), append(internal(), versioned()...)...)
}

func internal() []any {
	return []any{
		fillTemplate,
		func(s *leaderworkerset.LeaderWorkerSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfNil(&s.Replicas, 1)
			setIfZero(&s.StartupPolicy, leaderworkerset.StartupPolicyLeaderCreated)
			setIfNil(&s.NetworkConfig, leaderworkerset.NetworkConfig{})
			setIfNil(&s.NetworkConfig.SubdomainPolicy, leaderworkerset.SubdomainShared)
		},
		func(t *leaderworkerset.LeaderWorkerTemplate, c randfill.Continue) {
			c.FillNoCustom(t)
			setIfNil(&t.GroupSize, 1)
			setIfZero(&t.RestartPolicy, leaderworkerset.RestartPolicyNone)
			if t.SubGroupPolicy != nil {
				setIfNil(&t.SubGroupPolicy.Type, leaderworkerset.SubGroupPolicyLeaderWorker)
			}
		},
		func(s *leaderworkerset.RolloutStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Type = leaderworkerset.RolloutStrategyRollingUpdate
			setIfNil(&s.RollingUpdateConfiguration, leaderworkerset.RollingUpdateConfiguration{})
			setIfNil(&s.RollingUpdateConfiguration.Partition, 0)
			s.RollingUpdateConfiguration.MaxUnavailable, s.RollingUpdateConfiguration.MaxSurge = amount(c), amount(c)
		},
		func(b *leaderworkerset.GroupRestartBackoff, c randfill.Continue) {
			b.BaseSeconds, b.MaxSeconds = ptr.To(c.Int31()), ptr.To(c.Int31())
		},
	}
}

func versioned() []any {
	return []any{
		func(s *v1.LeaderWorkerSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfNil(&s.Replicas, 1)
			setIfZero(&s.StartupPolicy, v1.StartupPolicyLeaderCreated)
			setIfNil(&s.NetworkConfig, v1.NetworkConfig{})
			setIfNil(&s.NetworkConfig.SubdomainPolicy, v1.SubdomainShared)
		},
		func(t *v1.LeaderWorkerTemplate, c randfill.Continue) {
			c.FillNoCustom(t)
			setIfNil(&t.GroupSize, 1)
			setIfZero(&t.RestartPolicy, v1.RestartPolicyNone)
			if t.SubGroupPolicy != nil {
				setIfNil(&t.SubGroupPolicy.Type, v1.SubGroupPolicyLeaderWorker)
			}
		},
		func(s *v1.RolloutStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Type = v1.RolloutStrategyRollingUpdate
			setIfNil(&s.RollingUpdateConfiguration, v1.RollingUpdateConfiguration{})
			setIfNil(&s.RollingUpdateConfiguration.Partition, 0)
			s.RollingUpdateConfiguration.MaxUnavailable, s.RollingUpdateConfiguration.MaxSurge = amount(c), amount(c)
		},
		func(b *v1.GroupRestartBackoff, c randfill.Continue) {
			b.BaseSeconds, b.MaxSeconds = ptr.To(c.Int31()), ptr.To(c.Int31())
		},
	}
}

// amount is a number or a percentage.
func amount(c randfill.Continue) *intstr.IntOrString {
	if c.Bool() {
		return ptr.To(intstr.FromInt32(c.Int31()))
	}
	return ptr.To(intstr.FromString("25%"))
}

// fillTemplate fills what the server or the controller of sets looks at.
func fillTemplate(t *corev1.PodTemplateSpec, c randfill.Continue) {
	*t = corev1.PodTemplateSpec{}
	c.Fill(&t.Labels)
	c.Fill(&t.Annotations)
	c.Fill(&t.Spec.NodeSelector)
	c.Fill(&t.Spec.Tolerations)
	c.Fill(&t.Spec.Subdomain)
	for i := range c.Intn(3) {
		t.Spec.Containers = append(t.Spec.Containers, jobsetfuzzer.Container(i, c))
	}
	if c.Bool() {
		t.Spec.InitContainers = []corev1.Container{jobsetfuzzer.Container(0, c)}
	}
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
