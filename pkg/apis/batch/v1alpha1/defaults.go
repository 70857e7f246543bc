// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// SetDefaults_SequentialJobSpec names containers without a name: step-<index>, or as the step that they are.
func SetDefaults_SequentialJobSpec(s *SequentialJobSpec) {
	for i := range s.Containers {
		if s.Containers[i].Name == "" {
			s.Containers[i].Name = fmt.Sprintf("step-%d", i)
		}
	}
	for i := range s.Steps {
		if container := s.Steps[i].Container; container != nil && container.Name == "" {
			container.Name = s.Steps[i].Name
		}
	}
	if s.UpdateStrategy == nil {
		s.UpdateStrategy = &SequentialJobUpdateStrategy{}
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = UpdateContinue
	}
	if s.Template != nil && s.Template.Spec.RestartPolicy == "" {
		s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// SetDefaults_PodReadinessGroupSpec fills in readyWhen.
func SetDefaults_PodReadinessGroupSpec(s *PodReadinessGroupSpec) {
	if s.ReadyWhen == "" {
		s.ReadyWhen = ReadyWhenRunning
	}
}
