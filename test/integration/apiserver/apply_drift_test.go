// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// testClientSideDiff computes the diff of Argo CD without ServerSideDiff: it leaves out what a manifest does not have, also in the items of
// lists, and merges the manifest with what is left, as JSON. Only values that read back in another form differ.
func testClientSideDiff(t *testing.T, m publicObjects, live map[string]*unstructured.Unstructured) {
	for name, object := range m.objects {
		applied, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		current, err := json.Marshal(stated(object.Object, live[name].Object))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(applied, applied, current)
		if err != nil {
			t.Fatal(err)
		}
		if differs, want := string(patch) != "{}", filepath.Base(m.files[name]) == "tpu-multislice.yaml"; differs != want {
			t.Errorf("%s: differs is %t, want %t: %s", m.files[name], differs, want, patch)
		}
	}
}

// stated returns a value of an object without the fields that the manifest lacks.
func stated(manifest, live any) any {
	switch m := manifest.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return live
		}
		kept := map[string]any{}
		for key, value := range m {
			if current, found := l[key]; found {
				kept[key] = stated(value, current)
			}
		}
		return kept
	case []any:
		l, ok := live.([]any)
		if !ok {
			return live
		}
		kept := slices.Clone(l)
		for i := range min(len(m), len(l)) {
			kept[i] = stated(m[i], l[i])
		}
		return kept
	}
	return live
}

// testRecreated replaces an object by one with another immutable field. Without force that is refused, also by an applier that takes over
// all fields; with force the object is another one.
func testRecreated(t *testing.T, e *env) {
	content := fmt.Sprintf(manifest, "a")
	file := filepath.Join(t.TempDir(), "a.yaml")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(content)
	if out, err := plane.Kubectl(t, "apply", "--server-side", "-n", e.namespace, "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := e.get(t, "a")
	changed := strings.Replace(content, "image: ", "image: other-", 1)
	if changed == content {
		t.Fatal("the manifest has no image")
	}
	write(changed)
	for _, args := range [][]string{{"apply", "--server-side", "--force-conflicts"}, {"apply"}, {"replace"}} {
		out, err := plane.Kubectl(t, append(args, "-n", e.namespace, "-f", file)...)
		if err == nil || !strings.Contains(out, "field is immutable: cannot be changed after creation; delete and recreate the JobSet") {
			t.Errorf("kubectl %s: %v\n%s", args, err, out)
		}
	}
	if out, err := plane.Kubectl(t, "replace", "--force", "-n", e.namespace, "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := e.get(t, "a"); after.UID == before.UID || len(after.Status.Attempts) != 0 {
		t.Errorf("UID before %s, after %s; attempts %v", before.UID, after.UID, after.Status.Attempts)
	}
}

// testQueueOwnsSuspend has a queue resume a set. A manifest without spec.suspend has not drifted then; one with suspend: true has.
func testQueueOwnsSuspend(t *testing.T, e *env) {
	content := fmt.Sprintf(manifest, "a")
	dryRun := func(content string) *unstructured.Unstructured {
		options := metav1.PatchOptions{FieldManager: "argocd-controller", Force: new(true), DryRun: []string{metav1.DryRunAll}}
		answer, err := e.dynamic.Patch(t.Context(), "a", types.ApplyYAMLPatchType, []byte(content), options)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, stated := range []bool{false, true} {
		text := content
		if stated {
			text += "  suspend: true\n"
		}
		if _, err := e.apply(t, "a", text, "argocd-controller", metav1.PatchOptions{Force: new(true)}); err != nil {
			t.Fatal(err)
		}
		resumed, err := e.dynamic.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{FieldManager: "kueue"})
		if err != nil {
			t.Fatal(err)
		}
		if drifted := !cmp.Equal(resumed.Object["spec"], dryRun(text).Object["spec"]); drifted != stated {
			t.Errorf("drifted %t with suspend in the manifest %t", drifted, stated)
		}
		owners := 0
		for _, entry := range resumed.GetManagedFields() {
			if entry.Manager == "kueue" && strings.Contains(entry.FieldsV1.String(), "f:suspend") {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("kueue owns spec.suspend %d times: %v", owners, resumed.GetManagedFields())
		}
	}
}

// stableManifests write the fields of rewritten in the form in which they read back, as docs/operations/gitops.md advises.
var stableManifests = []string{`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: stable}
spec:
  failurePolicy: {rules: [{name: fatal, action: FailJobSet, targetReplicatedJobs: [workers]}]}
  volumeClaimPolicies:
  - templates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
      status: {}
    retentionPolicy: {whenDeleted: Retain}
  replicatedJobs:
  - name: workers
    template:
      spec:
        podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget, status: "True"}]}]}
        template:
          spec:
            restartPolicy: Never
            containers:
            - {name: main, image: busybox, resources: {limits: {example.com/tpu: "4"}, requests: {example.com/tpu: "4"}}, volumeMounts: [{name: data, mountPath: /data}]}
`, `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: stable}
spec: {containers: [{name: one, image: busybox, resources: {}}, {name: two, image: busybox, resources: {requests: {cpu: 100m}}}]}
`}

func testStableManifests(t *testing.T, e *env) {
	file := filepath.Join(t.TempDir(), "stable.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(stableManifests, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		out, err := plane.Kubectl(t, append(args, "-n", e.namespace, "-f", file)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", args, err, out)
		}
		return out
	}
	kubectl("apply")
	if out := kubectl("apply"); strings.Count(out, "unchanged") != len(stableManifests) {
		t.Errorf("a second apply says:\n%s", out)
	}
	kubectl("delete")
	for _, manager := range []string{"a", "b", "a"} {
		kubectl("apply", "--server-side", "--field-manager="+manager)
	}
}

// testRewrittenInJobs applies a Job whose podFailurePolicy and quantities are written as in rewritten.
func testRewrittenInJobs(t *testing.T, e *env) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {
        podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]},
        template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {limits: {example.com/tpu: 4}}}]}}}}`
	apply := func(manager string) error {
		_, err := plane.Kube.BatchV1().Jobs(e.namespace).Patch(t.Context(), "a", types.ApplyYAMLPatchType, []byte(job), metav1.PatchOptions{FieldManager: manager})
		return err
	}
	if err := apply("a"); err != nil {
		t.Fatal(err)
	}
	want := []string{".spec.podFailurePolicy.rules", `.spec.template.spec.containers[name="main"].resources.limits.example.com/tpu`}
	if diff := cmp.Diff(want, conflicts(t, apply("b"))); diff != "" {
		t.Errorf("conflicts of a second applier of a Job (-want +got):\n%s", diff)
	}
}
