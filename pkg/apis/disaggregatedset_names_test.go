// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	rolehelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// sample is the set whose revision upstream publishes.
func sample() *disaggregatedsetv1.DisaggregatedSet {
	ds := &disaggregatedsetv1.DisaggregatedSet{}
	for _, name := range []string{"prefill", "decode"} {
		template := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"role": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "worker", Image: "nginx:latest", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			}}},
		}
		role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
		role.Spec.Replicas = ptr.To[int32](2)
		role.Spec.LeaderWorkerTemplate = leaderworkersetv1.LeaderWorkerTemplate{
			LeaderTemplate: template.DeepCopy(), WorkerTemplate: template, GroupSize: ptr.To[int32](1),
			RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
		}
		ds.Spec.Roles = append(ds.Spec.Roles, role)
	}
	return ds
}

func TestRevision(t *testing.T) {
	revision := func(change func(*disaggregatedsetv1.DisaggregatedSet)) string {
		ds := sample()
		change(ds)
		got, err := rolehelper.Revision(ds)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const golden = "e61c8ac2"
	same := map[string]func(*disaggregatedsetv1.DisaggregatedSet){
		"as published": func(*disaggregatedsetv1.DisaggregatedSet) {},
		"replicas":     func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](9) },
		"slices":       func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Slices = ptr.To[int32](4) },
		"placement": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.PlacementPolicy = &disaggregatedsetv1.PlacementPolicy{Type: disaggregatedsetv1.PlacementExclusiveSlice, Topology: "rack"}
		},
		"metadata of a role": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.Roles[0].Labels = map[string]string{"team": "a"}
		},
		"startup policy": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.Roles[0].Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
		},
		"limit of restarts": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
		},
	}
	for name, change := range same {
		if got := revision(change); got != golden {
			t.Errorf("%s: revision %s, want %s", name, got, golden)
		}
	}
	for name, change := range map[string]func(*disaggregatedsetv1.DisaggregatedSet){
		"order of the roles": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.Roles[0], ds.Spec.Roles[1] = ds.Spec.Roles[1], ds.Spec.Roles[0]
		},
		"name of a role": func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Roles[0].Name = "encode" },
		"size": func(ds *disaggregatedsetv1.DisaggregatedSet) {
			ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](2)
		},
	} {
		if got := revision(change); got == golden {
			t.Errorf("%s: revision %s, want another", name, got)
		}
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"llm-3-e61c8ac2-prefill":     rolehelper.SetName("llm", 3, "e61c8ac2", "prefill"),
		"llm-3-e61c8ac2-prefill-prv": rolehelper.ServiceName(rolehelper.SetName("llm", 3, "e61c8ac2", "prefill")),
		"llm-prefill":                rolehelper.ScalerName("llm", "prefill"),
		"disaggregatedset.x-k8s.io/name=llm,disaggregatedset.x-k8s.io/role=prefill,leaderworkerset.sigs.k8s.io/worker-index=0": rolehelper.Selector("llm", "prefill"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
