// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills SequentialJobs, PodReadinessGroups and requests that act on objects with random values for round-trip
// tests. Values are such that decoding adds no default. Embedded templates stay small, as those of JobSets do.
package fuzzer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetfuzzer "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/fuzzer"
)

// Funcs returns the filling functions of the internal and of the versioned types.
func Funcs(codecs runtimeserializer.CodecFactory) []any {
	return append(jobsetfuzzer.Funcs(codecs), append(internal(), versioned()...)...)
}

func internal() []any {
	return []any{
		func(s *batch.JobSetRestartSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfZero(&s.Scope, batch.RestartScopeJobSet)
		},
		func(s *batch.SequentialJobSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Containers, s.Template, s.Steps = containers(c), template(c), nil
			for i := range c.Intn(3) {
				step := batch.SequentialJobStep{Name: fmt.Sprintf("step-%d", i)}
				switch c.Intn(3) {
				case 0:
					step.Container = container(i, c)
				case 1:
					c.Fill(&step.Job)
				case 2:
					c.Fill(&step.JobSet)
				}
				s.Steps = append(s.Steps, step)
			}
			if s.UpdateStrategy == nil {
				s.UpdateStrategy = &batch.SequentialJobUpdateStrategy{}
			}
			setIfZero(&s.UpdateStrategy.Type, batch.UpdateContinue)
		},
		func(p *batch.SequentialJobProgress, c randfill.Continue) {
			c.FillNoCustom(p)
			if p.CompletedIndices == nil {
				p.CompletedIndices = []int32{} // as it is shown
			}
		},
		func(s *batch.PodReadinessGroupSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfZero(&s.ReadyWhen, batch.ReadyWhenRunning)
		},
	}
}

func versioned() []any {
	return []any{
		func(s *v1alpha1.JobSetRestartSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfZero(&s.Scope, v1alpha1.RestartScopeJobSet)
		},
		func(s *v1alpha1.SequentialJobSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Containers, s.Template, s.Steps = containers(c), template(c), nil
			for i := range c.Intn(3) {
				step := v1alpha1.SequentialJobStep{Name: fmt.Sprintf("step-%d", i)}
				switch c.Intn(3) {
				case 0:
					step.Container = container(i, c)
				case 1:
					c.Fill(&step.Job)
				case 2:
					c.Fill(&step.JobSet)
				}
				s.Steps = append(s.Steps, step)
			}
			if s.UpdateStrategy == nil {
				s.UpdateStrategy = &v1alpha1.SequentialJobUpdateStrategy{}
			}
			setIfZero(&s.UpdateStrategy.Type, v1alpha1.UpdateContinue)
		},
		func(p *v1alpha1.SequentialJobProgress, c randfill.Continue) {
			c.FillNoCustom(p)
			if p.CompletedIndices == nil {
				p.CompletedIndices = []int32{}
			}
		},
		func(s *v1alpha1.PodReadinessGroupSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setIfZero(&s.ReadyWhen, v1alpha1.ReadyWhenRunning)
		},
	}
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func containers(c randfill.Continue) []corev1.Container {
	var out []corev1.Container
	for i := range c.Intn(3) {
		out = append(out, *container(i, c))
	}
	return out
}

func container(i int, c randfill.Continue) *corev1.Container {
	out := jobsetfuzzer.Container(i, c)
	return &out
}

// template is what containers share; often there is none.
func template(c randfill.Continue) *corev1.PodTemplateSpec {
	if c.Bool() {
		return nil
	}
	out := &corev1.PodTemplateSpec{}
	c.Fill(&out.Labels)
	c.Fill(&out.Spec.NodeSelector)
	c.Fill(&out.Spec.Tolerations)
	out.Spec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[c.Intn(2)]
	out.Spec.InitContainers = containers(c)
	return out
}
