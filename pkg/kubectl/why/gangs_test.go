// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestGangsOfSchedulers reads the PodGroups of schedulers with a kind of their own, for the pods of a JobSet that have no node.
func TestGangsOfSchedulers(t *testing.T) {
	group := func(version, phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": "PodGroup", "metadata": map[string]any{"name": "g", "namespace": "team"}, "status": map[string]any{"phase": phase},
		}}
	}
	ofVolcano := func(pod *corev1.Pod) { pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"} }
	ofCoscheduling := func(pod *corev1.Pod) { pod.Labels["scheduling.x-k8s.io/pod-group"] = "g" }
	for name, tc := range map[string]struct {
		pod    func(*corev1.Pod)
		groups []runtime.Object
		want   string
	}{
		"Volcano waits": {
			ofVolcano, []runtime.Object{group("scheduling.volcano.sh/v1beta1", "Inqueue")}, "the pod group g of Volcano is Inqueue, and its pods are only scheduled together",
		},
		"none of Volcano": {ofVolcano, nil, "the pods wait for the pod group g of Volcano, which does not exist"},
		"coscheduling waits": {
			ofCoscheduling, []runtime.Object{group("scheduling.x-k8s.io/v1alpha1", "Scheduling")},
			"the pod group g of the coscheduling plugin is Scheduling, and its pods are only scheduled together",
		},
		"a new one of coscheduling": {ofCoscheduling, []runtime.Object{group("scheduling.x-k8s.io/v1alpha1", "")}, "the pod group g of the coscheduling plugin is new,"},
		"none of coscheduling":      {ofCoscheduling, nil, "the pods wait for the pod group g of the coscheduling plugin, which does not exist"},
		"all are scheduled":         {ofCoscheduling, []runtime.Object{group("scheduling.x-k8s.io/v1alpha1", "Scheduled")}, ""},
		"another one":               {ofVolcano, []runtime.Object{group("scheduling.x-k8s.io/v1alpha1", "Pending")}, "the pods wait for the pod group g of Volcano, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, healthy(notReadyYet, pods(func(pod *corev1.Pod) {
				noNode("")(pod)
				pod.Status.Conditions = nil
				tc.pod(pod)
			})), tc.groups...)
			e := w.load(t)
			e.Now = now
			first := Diagnose(e).Findings[0]
			if got := first.Cause == PodGroupWaits; got != (tc.want != "") || !strings.HasPrefix(first.Summary, tc.want) {
				t.Errorf("got %s: %s, want %q", first.Cause, first.Summary, tc.want)
			}
		})
	}
}
