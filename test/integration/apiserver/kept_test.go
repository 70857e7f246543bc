// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// without reads an object as a client does whose types lack the fields.
func without(t *testing.T, object *unstructured.Unstructured, fields ...[]string) *unstructured.Unstructured {
	t.Helper()
	copied := object.DeepCopy()
	for _, path := range fields {
		if _, found, _ := unstructured.NestedFieldNoCopy(copied.Object, path...); !found {
			t.Errorf("the object has no %v", path)
		}
		unstructured.RemoveNestedField(copied.Object, path...)
	}
	return copied
}

func fieldsAt(object *unstructured.Unstructured, fields ...[]string) map[string]any {
	values := map[string]any{}
	for _, path := range fields {
		if value, found, _ := unstructured.NestedFieldCopy(object.Object, path...); found {
			values[fmt.Sprint(path)] = value
		}
	}
	return values
}

// entriesOf returns what the managers own. Times are left out, and entries of a manager of the test.
func entriesOf(object *unstructured.Unstructured, but string) map[string]string {
	entries := map[string]string{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != but {
			entries[entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource] = entry.FieldsV1.String()
		}
	}
	return entries
}

func applied(t *testing.T, client dynamic.ResourceInterface, name, content string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	object, err := client.Patch(t.Context(), name, types.ApplyYAMLPatchType, []byte(content), metav1.PatchOptions{FieldManager: "owner"}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func testSetKeptFields(t *testing.T, e *sets) {
	fields := [][]string{
		{"spec", "paused"}, {"spec", "revisionHistoryLimit"}, {"spec", "groupRestartBackoff"}, {"spec", "leaderWorkerTemplate", "maxGroupRestarts"},
	}
	before := applied(t, e.dynamic, "a", leaderWorkerSet+"    maxGroupRestarts: 4\n  paused: true\n  revisionHistoryLimit: 3\n  groupRestartBackoff: {baseSeconds: 5}\n")
	next := without(t, before, fields...)
	next.SetLabels(map[string]string{"a": "b"})
	after, err := e.dynamic.Update(t.Context(), next, metav1.UpdateOptions{FieldManager: "upstream"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fieldsAt(before, fields...), fieldsAt(after, fields...)); diff != "" || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("generation %d, fields (-before +after):\n%s", after.GetGeneration(), diff)
	}
	if diff := cmp.Diff(entriesOf(before, "upstream"), entriesOf(after, "upstream")); diff != "" {
		t.Errorf("owners (-before +after):\n%s", diff)
	}
	again, err := e.dynamic.Update(t.Context(), without(t, after, fields...), metav1.UpdateOptions{FieldManager: "upstream"})
	if err != nil {
		t.Fatal(err)
	}
	if again.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("an update without a change was stored:\n%s", cmp.Diff(after, again))
	}

	// Clients of this server remove what they leave out if they send protobuf.
	typed := protobufClients(t, e.config).LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	lws, err := typed.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lws.Spec.Paused, lws.Spec.GroupRestartBackoff = nil, nil
	if lws, err = typed.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if spec := lws.Spec; spec.Paused != nil || spec.GroupRestartBackoff != nil || spec.RevisionHistoryLimit == nil {
		t.Errorf("the update made %+v", spec)
	}
	// The applier still owns the others.
	released := applied(t, e.dynamic, "a", leaderWorkerSet)
	if got := fieldsAt(released, fields...); len(got) > 0 {
		t.Errorf("the applier left %v", got)
	}
}

func testKeptStatus(t *testing.T, e *env) {
	fields := [][]string{{"status", "attempts"}, {"status", "readyMilliseconds"}, {"status", "placement"}}
	e.create(t, jobSet("a"))
	before := applied(t, e.dynamic, "a", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, status: {
		readyMilliseconds: 7, attempts: [{number: 1, trigger: Start, scope: JobSet}],
		placement: {restarts: 0, replicatedJobs: [{name: workers, topologyKey: rack, jobs: [{domain: r1}, {domain: r2}]}]}}}`, "status")
	next := without(t, before, fields...)
	if err := unstructured.SetNestedField(next.Object, int64(1), "status", "restarts"); err != nil {
		t.Fatal(err)
	}
	after, err := e.dynamic.UpdateStatus(t.Context(), next, metav1.UpdateOptions{FieldManager: "upstream"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fieldsAt(before, fields...), fieldsAt(after, fields...)); diff != "" {
		t.Errorf("fields (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(entriesOf(before, "upstream"), entriesOf(after, "upstream")); diff != "" {
		t.Errorf("owners (-before +after):\n%s", diff)
	}
	patch := []byte(`{"status":{"placement":null}}`)
	if after, err = e.dynamic.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if got := fieldsAt(after, fields...); len(got) != 2 {
		t.Errorf("after the removal of the placement: %v", got)
	}
	// The controller sends protobuf and removes what it leaves out.
	js := e.get(t, "a")
	js.Status.Attempts = nil
	if js, err = e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if js.Status.Attempts != nil || js.Status.ReadyMilliseconds != 7 {
		t.Errorf("the controller made %+v", js.Status)
	}
}
