// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// newChild returns the LeaderWorkerSet of a role.
func newChild(ds *disaggregatedsetv1.DisaggregatedSet, role *disaggregatedsetv1.DisaggregatedRoleSpec, index int32, revision string, replicas int64) *leaderworkersetv1.LeaderWorkerSet {
	s := &slice{obs: Observed{Set: ds}, index: index, revision: revision}
	return s.creation(roleState{DisaggregatedRoleSpec: role}, replicas).Child(ds)
}

func TestNewChild(t *testing.T) {
	ds := service(2)
	role := &ds.Spec.Roles[0]
	role.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "gpus", "app": "mine", disaggregatedsetv1.RoleLabelKey: "mine"}
	role.Annotations = map[string]string{"a": "b"}
	role.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = map[string]string{"app": "mine", "tier": "gpu"}
	role.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
	got := newChild(ds, role, 1, "e61c8ac2", 4)
	system := map[string]string{
		disaggregatedsetv1.SetNameLabelKey: "llm", disaggregatedsetv1.RoleLabelKey: "prefill", disaggregatedsetv1.SliceLabelKey: "1",
		disaggregatedsetv1.RevisionLabelKey: "e61c8ac2", "app": "llm-1-prefill",
	}
	want := &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "llm-1-e61c8ac2-prefill", Namespace: "ml", Labels: hostplan.Merged(map[string]string{"kueue.x-k8s.io/queue-name": "gpus"}, system), Annotations: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "disaggregatedset.x-k8s.io/v1", Kind: "DisaggregatedSet", Name: "llm", UID: "set", Controller: ptr.To(true)}},
		},
	}
	want.Spec.Replicas, want.Spec.StartupPolicy = ptr.To[int32](4), leaderworkersetv1.StartupPolicyLeaderReady
	want.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = hostplan.Merged(map[string]string{"tier": "gpu"}, system)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("child (-want +got):\n%s", diff)
	}
	if role.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels["app"] != "mine" || *role.Spec.Replicas != 2 {
		t.Error("the set itself was changed")
	}
}

func TestNewService(t *testing.T) {
	got := newService(service(1), Child{Ref: Ref{Name: "llm-0-r-decode"}, Role: "decode", Revision: "r"})
	labels := map[string]string{
		disaggregatedsetv1.SetNameLabelKey: "llm", disaggregatedsetv1.RoleLabelKey: "decode", disaggregatedsetv1.RevisionLabelKey: "r", disaggregatedsetv1.SliceLabelKey: "0",
	}
	if got.Name != "llm-0-r-decode-prv" || !cmp.Equal(labels, got.Labels) || !cmp.Equal(labels, got.Spec.Selector) {
		t.Errorf("got %s with labels %v and selector %v", got.Name, got.Labels, got.Spec.Selector)
	}
	if got.Spec.ClusterIP != corev1.ClusterIPNone || got.Spec.PublishNotReadyAddresses || len(got.Spec.Ports) > 0 {
		t.Errorf("got %+v, want a headless Service of ready pods without ports", got.Spec)
	}
	early := newService(service(1), Child{Ref: Ref{Name: "llm-r-decode"}, Role: "decode", Revision: "r", Legacy: true})
	if _, found := early.Labels[disaggregatedsetv1.SliceLabelKey]; found {
		t.Errorf("got a slice in %v", early.Labels)
	}
}

func TestPlacement(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	notIn := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
	}
	exists := func(key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
	}
	terms := func(requirements ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
	}
	const set, slice = disaggregatedsetv1.SetNameLabelKey, disaggregatedsetv1.SliceLabelKey
	users := terms(in("team", "a"))
	cases := map[string]struct {
		kind           disaggregatedsetv1.PlacementPolicyType
		slice          int32
		together, away []corev1.PodAffinityTerm
	}{
		"none": {kind: disaggregatedsetv1.PlacementNone, together: []corev1.PodAffinityTerm{users}},
		"slice 0": {
			kind: disaggregatedsetv1.PlacementExclusiveSlice, together: []corev1.PodAffinityTerm{users, terms(in(set, "llm"), in(slice, "0"))},
			away: []corev1.PodAffinityTerm{terms(in(set, "llm"), exists(slice), notIn(slice, "0"))},
		},
		"slice 2": {
			kind: disaggregatedsetv1.PlacementExclusiveSlice, slice: 2, together: []corev1.PodAffinityTerm{users, terms(in(set, "llm"), in(slice, "2"))},
			away: []corev1.PodAffinityTerm{terms(in(set, "llm"), notIn(slice, "2"))},
		},
		"alone": {
			kind: disaggregatedsetv1.PlacementExclusiveTopology, slice: 1, together: []corev1.PodAffinityTerm{users, terms(in(set, "llm"), in(slice, "1"))},
			away: []corev1.PodAffinityTerm{terms(in(set, "llm"), notIn(slice, "1")), terms(exists(set), notIn(set, "llm"), exists(slice))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.PodTemplateSpec{}
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{users}}}
			addPlacement(pod, &disaggregatedsetv1.PlacementPolicy{Type: tc.kind, Topology: "rack"}, "llm", tc.slice)
			if diff := cmp.Diff(tc.together, pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
			var away []corev1.PodAffinityTerm
			if anti := pod.Spec.Affinity.PodAntiAffinity; anti != nil {
				away = anti.RequiredDuringSchedulingIgnoredDuringExecution
			}
			if diff := cmp.Diff(tc.away, away); diff != "" {
				t.Errorf("anti-affinity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	number := func(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt(n)) }
	share := func(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
	type config = leaderworkersetv1.RollingUpdateConfiguration
	for name, tc := range map[string]struct {
		config             *config
		surge, unavailable int64
	}{
		"absent":           {nil, 1, 0},
		"surge alone":      {&config{MaxSurge: number(2), MaxUnavailable: number(0)}, 2, 0},
		"both":             {&config{MaxSurge: number(2), MaxUnavailable: number(1)}, 2, 1},
		"unavailable":      {&config{MaxSurge: number(0), MaxUnavailable: number(3)}, 0, 3},
		"shares":           {&config{MaxSurge: share("25%"), MaxUnavailable: share("25%")}, 2, 1},
		"shares of little": {&config{MaxSurge: number(0), MaxUnavailable: share("10%")}, 1, 0},
	} {
		if surge, unavailable := limits(tc.config, 5); surge != tc.surge || unavailable != tc.unavailable {
			t.Errorf("%s: got %d and %d, want %d and %d", name, surge, unavailable, tc.surge, tc.unavailable)
		}
	}
}
