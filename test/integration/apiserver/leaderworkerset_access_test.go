// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// testSetScale: a write of the scale is owned as such, and follows no rule but the range.
func testSetScale(t *testing.T, s *sets) {
	manifest := strings.Replace(leaderWorkerSet, "spec:\n", "spec:\n  rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 25%}}\n", 1)
	if _, err := s.applyAs(t, "user", manifest); err != nil {
		t.Fatal(err)
	}
	scale := func(body string) (*unstructured.Unstructured, error) {
		return s.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
	}
	got, err := scale(`{"spec":{"replicas":2}}`) // 25% of 2 groups is 0
	if err != nil {
		t.Fatal(err)
	}
	if got.GetKind() != "Scale" || got.GetAPIVersion() != "autoscaling/v1" {
		t.Errorf("the answer is a %s of %s", got.GetKind(), got.GetAPIVersion())
	}
	for _, body := range []string{`{"spec":{"replicas":-1}}`, `{"spec":{"replicas":1000001}}`} {
		if _, err := scale(body); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be from 0 to 1000000") {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := s.applyAs(t, "user", manifest); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "autoscaler" with subresource "scale"`) {
		t.Errorf("applying the old number: %v", err)
	}
	if _, err := s.applyAs(t, "user", strings.Replace(manifest, "  replicas: 4\n", "", 1)); err != nil {
		t.Errorf("applying without a number: %v", err)
	}
	stored, err := s.dynamic.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(stored.Object, "spec", "replicas"); n != 2 || stored.GetGeneration() != 2 {
		t.Errorf("replicas %d, generation %d; want 2 and 2", n, stored.GetGeneration())
	}
}

func testSetStatus(t *testing.T, s *sets) {
	s.make(t, "a")
	body := `{"metadata":{"labels":{"a":"b"}},"spec":{"replicas":9},"status":{"replicas":3,"readyReplicas":2,"hpaPodSelector":"x=y"}}`
	got, err := s.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "controller"}, "status")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "hpaPodSelector": "x=y"}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" || got.GetGeneration() != 1 || len(got.GetLabels()) > 0 {
		t.Errorf("generation %d, labels %v, status (-want +got):\n%s", got.GetGeneration(), got.GetLabels(), diff)
	}
	if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); n != 4 {
		t.Errorf("the status changed spec.replicas to %d", n)
	}
	if !slices.ContainsFunc(got.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "controller" && e.Subresource == "status" }) {
		t.Errorf("the owner of the status is not recorded: %v", got.GetManagedFields())
	}
	got, err = s.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"replicas":7}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Errorf("a write of the set changed the status (-want +got):\n%s", diff)
	}
	scale, err := s.dynamic.Get(t.Context(), "a", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"replicas": int64(3), "selector": "x=y"}, scale.Object["status"]); diff != "" {
		t.Errorf("the scale (-want +got):\n%s", diff)
	}
}

func testSetKubectl(t *testing.T, s *sets) {
	s.make(t, "a")
	kubectl := func(command string) string {
		out, err := plane.Kubectl(t, append(strings.Fields(command), "-n", s.namespace)...)
		if err != nil {
			t.Errorf("kubectl %s: %v\n%s", command, err, out)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	if got, want := kubectl("get lws"), "NAME READY DESIRED UP-TO-DATE AGE a 4 "; !strings.HasPrefix(got, want) {
		t.Errorf("get prints %q, want %q", got, want)
	}
	if got, want := kubectl("scale lws a --replicas=3"), "leaderworkerset.leaderworkerset.x-k8s.io/a scaled"; got != want {
		t.Errorf("scale prints %q, want %q", got, want)
	}
	if got := kubectl("get lws a -o jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("replicas is %s, want 3", got)
	}
	for field, words := range map[string][]string{
		"lws":                           {"KIND: LeaderWorkerSet", "spec", "status"},
		"lws.spec.leaderWorkerTemplate": {"size", "restartPolicy", "volumeClaimTemplates", "maxGroupRestarts"},
		"lws.spec.startupPolicy":        {"ENUM:", "LeaderCreated", "LeaderReady"},
		"lws.status":                    {"hpaPodSelector", "readyReplicas"},
	} {
		got := kubectl("explain " + field)
		for _, word := range words {
			if !strings.Contains(got, word) {
				t.Errorf("explain %s lacks %q: %s", field, word, got)
			}
		}
	}
	if got := kubectl("delete lws a --wait=false"); !strings.Contains(got, "deleted") {
		t.Errorf("delete prints %q", got)
	}
}

func testSetDiscovery(t *testing.T, _ *sets) {
	list, err := plane.Kube.Discovery().ServerResourcesForGroupVersion("leaderworkerset.x-k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metav1.APIResource{}
	for _, resource := range list.APIResources {
		slices.Sort(resource.Verbs)
		resource.StorageVersionHash = ""
		got[resource.Name] = resource
	}
	for _, want := range []metav1.APIResource{
		{Name: "leaderworkersets", SingularName: "leaderworkerset", Namespaced: true, Kind: "LeaderWorkerSet", ShortNames: []string{"lws"}, Verbs: metav1.Verbs{
			"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
		}},
		{Name: "leaderworkersets/status", Namespaced: true, Kind: "LeaderWorkerSet", Verbs: metav1.Verbs{"get", "patch", "update"}},
		{Name: "leaderworkersets/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: metav1.Verbs{"get", "patch", "update"}},
	} {
		if diff := cmp.Diff(want, got[want.Name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Name, diff)
		}
	}
}

func testSetCollections(t *testing.T, s *sets) {
	for _, name := range []string{"a", "b", "c"} {
		s.make(t, name)
	}
	if err := s.dynamic.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=b"}); err != nil {
		t.Fatal(err)
	}
	list, err := s.dynamic.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "b" {
		t.Errorf("left are %v, %v", list, err)
	}
}
