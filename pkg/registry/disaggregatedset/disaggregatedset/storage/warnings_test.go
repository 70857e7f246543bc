// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
)

// Roles get the warnings that LeaderWorkerSets get about their templates.
func TestRolesGetWarningsOfTemplates(t *testing.T) {
	good := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}
	bad := *good.DeepCopy()
	bad.Spec.RestartPolicy = corev1.RestartPolicyNever
	bad.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 99999}}
	bad.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	set := func(worker corev1.PodTemplateSpec) *disaggregatedset.DisaggregatedSet {
		roles := make([]disaggregatedset.DisaggregatedRoleSpec, 2)
		roles[0].Name, roles[1].Name = "prefill", "decode"
		roles[0].Spec.LeaderWorkerTemplate = leaderworkerset.LeaderWorkerTemplate{WorkerTemplate: good}
		roles[1].Spec.LeaderWorkerTemplate = leaderworkerset.LeaderWorkerTemplate{LeaderTemplate: &good, WorkerTemplate: worker}
		ds := &disaggregatedset.DisaggregatedSet{Spec: disaggregatedset.DisaggregatedSetSpec{Roles: roles}}
		ds.Name = "serve"
		return ds
	}
	s := strategy.NewStrategy(runtime.NewScheme())
	if got := s.WarningsOnCreate(t.Context(), set(good)); len(got) > 0 {
		t.Errorf("warnings of good templates: %q", got)
	}
	const pod = "spec.roles[1].spec.leaderWorkerTemplate.workerTemplate.spec"
	want := []string{
		pod + `.containers[0].volumeMounts[0].name: the pod has no volume "data"; pods are rejected unless an admission webhook adds it`,
		pod + `.restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		pod + `.containers[0].ports[0].containerPort: Invalid value: 99999: must be from 1 to 65535`,
	}
	if diff := cmp.Diff(want, s.WarningsOnCreate(t.Context(), set(bad))); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := s.WarningsOnUpdate(t.Context(), set(bad), set(bad)); len(got) > 0 {
		t.Errorf("warnings are repeated: %q", got)
	}
}
