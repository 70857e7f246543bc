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
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// leaderWorkerSet is a manifest with little more than a template.
const leaderWorkerSet = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: a}
spec:
  replicas: 4
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {containers: [{name: main, image: busybox, ports: [{containerPort: 80}]}]}}
`

// sets is what a case about LeaderWorkerSets works with.
type sets struct {
	*env
	dynamic dynamic.ResourceInterface
}

// TestLeaderWorkerSets covers what users see of LeaderWorkerSets through the aggregation layer.
func TestLeaderWorkerSets(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	untyped, err := dynamic.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *sets){
		"defaults are on the wire":              testSetDefaults,
		"writes need a resourceVersion":         testSetWrites,
		"every type of patch works":             testSetPatches,
		"two managers own containers each":      testSetOwners,
		"an autoscaler owns the replicas":       testSetScale,
		"the status is apart":                   testSetStatus,
		"updates keep what upstream lacks":      testSetKeptFields,
		"kubectl shows, explains and scales it": testSetKubectl,
		"discovery is that of upstream":         testSetDiscovery,
		"collections are deleted":               testSetCollections,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, server, plane.Config)
			test(t, &sets{e, untyped.Resource(leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets")).Namespace(e.namespace)})
		})
	}
}

// object reads a manifest with the name.
func object(t *testing.T, manifest, name string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetName(name)
	return obj
}

func (s *sets) make(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	created, err := s.dynamic.Create(t.Context(), object(t, leaderWorkerSet, name), metav1.CreateOptions{FieldManager: "user"})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func testSetDefaults(t *testing.T, s *sets) {
	given := object(t, leaderWorkerSet, "a")
	given.Object["status"] = map[string]any{"replicas": int64(9)}
	created, err := s.dynamic.Create(t.Context(), given, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	container := map[string]any{
		"name": "main", "image": "busybox", "resources": map[string]any{},
		"ports": []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}},
	}
	want := map[string]any{
		"replicas": int64(4), "startupPolicy": "LeaderCreated", "networkConfig": map[string]any{"subdomainPolicy": "Shared"},
		"rolloutStrategy": map[string]any{
			"type": "RollingUpdate", "rollingUpdateConfiguration": map[string]any{"partition": int64(0), "maxUnavailable": int64(1), "maxSurge": int64(0)},
		},
		"leaderWorkerTemplate": map[string]any{
			"size": int64(2), "restartPolicy": "RecreateGroupOnPodRestart",
			"workerTemplate": map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"containers": []any{container}}},
		},
	}
	if diff := cmp.Diff(want, created.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if status := created.Object["status"]; status != nil || created.GetGeneration() != 1 {
		t.Errorf("generation %d, status %v", created.GetGeneration(), status)
	}
	given = object(t, leaderWorkerSet, strings.Repeat("a", 52))
	if _, err := s.dynamic.Create(t.Context(), given, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must have at most 51 characters; it has 52") {
		t.Errorf("a long name: %v", err)
	}
}

func testSetWrites(t *testing.T, s *sets) {
	created := s.make(t, "a")
	blind := object(t, leaderWorkerSet, "a")
	if _, err := s.dynamic.Update(t.Context(), blind, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "resourceVersion") {
		t.Errorf("without a resourceVersion: %v", err)
	}
	if _, err := s.dynamic.Update(t.Context(), object(t, leaderWorkerSet, "b"), metav1.UpdateOptions{}); err == nil || apierrors.IsAlreadyExists(err) {
		t.Errorf("PUT of a set that does not exist: %v", err)
	}
	if err := unstructured.SetNestedField(created.Object, int64(-1), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dynamic.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("replicas -1: %v", err)
	}
	list, err := s.dynamic.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("by name: %v", err)
	}
	if _, err := s.dynamic.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.replicas=4"}); !apierrors.IsBadRequest(err) {
		t.Errorf("by replicas: %v", err)
	}
}

func testSetPatches(t *testing.T, s *sets) {
	s.make(t, "a")
	for i, patch := range []struct {
		kind types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":5}]`},
		{types.MergePatchType, `{"spec":{"replicas":6,"networkConfig":null}}`},
		{types.StrategicMergePatchType, `{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[{"name":"side","image":"b"}]}}}}}`},
		{types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`},
	} {
		got, err := s.dynamic.Patch(t.Context(), "a", patch.kind, []byte(patch.body), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("%s: %v", patch.kind, err)
			continue
		}
		if want := int64(min(i+2, 4)); got.GetGeneration() != want {
			t.Errorf("%s: generation %d, want %d", patch.body, got.GetGeneration(), want)
		}
		if policy, _, _ := unstructured.NestedString(got.Object, "spec", "networkConfig", "subdomainPolicy"); policy != "Shared" {
			t.Errorf("%s: the subdomainPolicy is %q", patch.body, policy)
		}
	}
	got, err := s.dynamic.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(got.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers")
	if len(containers) != 2 {
		t.Errorf("%d containers after a strategic merge, want 2", len(containers))
	}
}

func (s *sets) applyAs(t *testing.T, manager, manifest string) (*unstructured.Unstructured, error) {
	t.Helper()
	return s.dynamic.Apply(t.Context(), "a", object(t, manifest, "a"), metav1.ApplyOptions{FieldManager: manager})
}

func testSetOwners(t *testing.T, s *sets) {
	second := strings.NewReplacer("  replicas: 4\n", "", "    size: 2\n", "", "name: main, image: busybox, ports: [{containerPort: 80}]", "name: side, image: sidecar").Replace(leaderWorkerSet)
	for manager, manifest := range map[string]string{"one": leaderWorkerSet, "two": second} {
		if _, err := s.applyAs(t, manager, manifest); err != nil {
			t.Fatalf("%s: %v", manager, err)
		}
	}
	got, err := s.applyAs(t, "two", second)
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(got.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers")
	var names []string
	for _, container := range containers {
		names = append(names, container.(map[string]any)["name"].(string))
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"main", "side"}, names); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	_, err = s.applyAs(t, "two", strings.Replace(leaderWorkerSet, "busybox", "other", 1))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one"`) {
		t.Errorf("the image of another manager: %v", err)
	}
}
