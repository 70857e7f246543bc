// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	applyv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/applyconfiguration/jobset/v1alpha2"
)

const manifest = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: %s}
spec:
  failurePolicy: {maxRestarts: 2}
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        completionMode: Indexed
        template:
          spec:
            containers:
            - name: main
              image: busybox
              env: [{name: A, value: b}]
              ports: [{containerPort: 80}]
              resources: {requests: {cpu: 1000m, memory: 1024Mi}}
`

func testPatchTypes(t *testing.T, e *env) {
	patches := map[types.PatchType]struct{ main, status string }{
		types.JSONPatchType: {
			main:   `[{"op":"add","path":"/spec/suspend","value":true}]`,
			status: `[{"op":"add","path":"/status","value":{"restarts":1}}]`,
		},
		types.MergePatchType:          {main: `{"spec":{"suspend":true}}`, status: `{"status":{"restarts":1}}`},
		types.StrategicMergePatchType: {main: `{"spec":{"suspend":true}}`, status: `{"status":{"restarts":1}}`},
		types.ApplyYAMLPatchType: {
			main:   `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","spec":{"suspend":true}}`,
			status: `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","status":{"restarts":1}}`,
		},
	}
	i := 0
	for kind, patch := range patches {
		i++
		name, options := fmt.Sprintf("a%d", i), metav1.PatchOptions{}
		if kind == types.ApplyYAMLPatchType {
			options.FieldManager = "test"
		}
		e.create(t, jobSet(name))
		got, err := e.typed.Patch(t.Context(), name, kind, []byte(patch.main), options)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if !ptr.Deref(got.Spec.Suspend, false) || got.Generation != 2 || len(got.Spec.ReplicatedJobs) != 1 {
			t.Errorf("%s made %+v", kind, got)
		}
		got, err = e.typed.Patch(t.Context(), name, kind, []byte(patch.status), options, "status")
		if err != nil {
			t.Errorf("%s of the status: %v", kind, err)
			continue
		}
		if got.Status.Restarts != 1 || got.Generation != 2 {
			t.Errorf("%s of the status made %+v", kind, got)
		}
	}
}

func testStrategicMerge(t *testing.T, e *env) {
	e.create(t, jobSet("a", func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Suspend = ptr.To(true)
		second := *js.Spec.ReplicatedJobs[0].DeepCopy()
		second.Name = "launcher"
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, second)
	}))
	patch := `{"spec":{"replicatedJobs":[{"name":"launcher","template":{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}}]}}`
	got, err := e.typed.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	selectors := map[string]map[string]string{}
	for _, rj := range got.Spec.ReplicatedJobs {
		selectors[rj.Name] = rj.Template.Spec.Template.Spec.NodeSelector
	}
	if diff := cmp.Diff(map[string]map[string]string{"workers": nil, "launcher": {"a": "b"}}, selectors); diff != "" {
		t.Errorf("node selectors (-want +got):\n%s", diff)
	}
}

func (e *env) apply(t *testing.T, name, content, manager string, options metav1.PatchOptions, subresources ...string) (*jobsetv1alpha2.JobSet, error) {
	t.Helper()
	options.FieldManager = manager
	return e.typed.Patch(t.Context(), name, types.ApplyYAMLPatchType, []byte(content), options, subresources...)
}

func testApplyTwice(t *testing.T, e *env) {
	content := fmt.Sprintf(manifest, "a")
	first, err := e.apply(t, "a", content, "kubectl", metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.typed.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"restarts":1}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	before := e.get(t, "a")
	second, err := e.apply(t, "a", content, "kubectl", metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if second.Generation != first.Generation {
		t.Errorf("generation went from %d to %d", first.Generation, second.Generation)
	}
	if second.ResourceVersion != before.ResourceVersion {
		t.Errorf("resourceVersion went from %s to %s:\n%s", before.ResourceVersion, second.ResourceVersion, cmp.Diff(before, second))
	}
}

func testTypedApply(t *testing.T, e *env) {
	config := applyv1alpha2.JobSet("a", e.namespace).WithSpec(applyv1alpha2.JobSetSpec().WithSuspend(true))
	applied, err := e.typed.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	extracted, err := applyv1alpha2.ExtractJobSet(applied, "test")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Spec, extracted.Spec); diff != "" {
		t.Errorf("extracted spec (-want +got):\n%s", diff)
	}
	status := applyv1alpha2.JobSet("a", e.namespace).WithStatus(applyv1alpha2.JobSetStatus().WithRestarts(4))
	applied, err = e.typed.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || applied.Status.Restarts != 4 {
		t.Errorf("applying the status: %v, %+v", err, applied)
	}
}

func testOwnership(t *testing.T, e *env) {
	content := `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"a","labels":{"l":"m"}},"spec":{"suspend":true},"status":{"restarts":1}}`
	if _, err := e.apply(t, "a", content, "main", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := e.apply(t, "a", content, "status", metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string][]string{}
	for _, entry := range got.ManagedFields {
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		for field := range fields {
			owned[entry.Manager+"/"+entry.Subresource] = append(owned[entry.Manager+"/"+entry.Subresource], field)
		}
	}
	for _, fields := range owned {
		slices.Sort(fields)
	}
	want := map[string][]string{"main/": {"f:metadata", "f:spec"}, "status/status": {"f:status"}}
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Errorf("owned fields (-want +got):\n%s", diff)
	}
}

func testApplyConflict(t *testing.T, e *env) {
	suspend := `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"a"},"spec":{"suspend":%t}}`
	if _, err := e.apply(t, "a", fmt.Sprintf(suspend, true), "one", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.apply(t, "a", fmt.Sprintf(suspend, false), "two", metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("the second applier: %v", err)
	}
	got, err := e.apply(t, "a", fmt.Sprintf(suspend, false), "two", metav1.PatchOptions{Force: ptr.To(true)})
	if err != nil || ptr.Deref(got.Spec.Suspend, true) {
		t.Errorf("with force: %v, %+v", err, got)
	}
}

func testDryRun(t *testing.T, e *env) {
	all := []string{metav1.DryRunAll}
	if _, err := e.typed.Create(t.Context(), jobSet("a"), metav1.CreateOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.typed.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created it: %v", err)
	}
	before := e.create(t, jobSet("a"))
	patched, err := e.typed.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{DryRun: all})
	if err != nil || patched.Generation != 2 {
		t.Errorf("a dry patch: %v, %+v", err, patched)
	}
	if _, err := e.apply(t, "a", fmt.Sprintf(manifest, "b"), "x", metav1.PatchOptions{DryRun: all}); err == nil {
		t.Error("a dry apply under another name is accepted")
	}
	if err := e.typed.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Errorf("a dry delete: %v", err)
	}
	if err := e.typed.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{}); err != nil {
		t.Errorf("a dry deletecollection: %v", err)
	}
	if diff := cmp.Diff(before, e.get(t, "a")); diff != "" {
		t.Errorf("dry runs changed it (-want +got):\n%s", diff)
	}
}
