// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakestore_test

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/fakestore"
)

func newClient(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	fakestore.Install(&client.Fake, client.Tracker())
	return client
}

func newJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](1)}, Status: batchv1.JobStatus{Active: 1},
	}
}

func TestCreatedObjectsHaveUIDsAndVersions(t *testing.T) {
	jobs := newClient().BatchV1().Jobs("ns")
	created, err := jobs.Create(t.Context(), newJob(), metav1.CreateOptions{})
	if err != nil || created.UID == "" || created.ResourceVersion == "" {
		t.Fatalf("UID %q, version %q, error %v", created.UID, created.ResourceVersion, err)
	}
	if err := jobs.Delete(t.Context(), "job", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next, err := jobs.Create(t.Context(), newJob(), metav1.CreateOptions{})
	if err != nil || next.UID == created.UID || next.ResourceVersion == created.ResourceVersion {
		t.Errorf("the next object has UID %q and version %q, the first one has %q and %q; error %v",
			next.UID, next.ResourceVersion, created.UID, created.ResourceVersion, err)
	}
}

// TestDeletionHasANewVersion watches while one of two objects is deleted. A cache that goes by versions would otherwise seem to be as old as
// the deleted object.
func TestDeletionHasANewVersion(t *testing.T) {
	jobs := newClient().BatchV1().Jobs("ns")
	watcher, err := jobs.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for _, name := range []string{"a", "b"} {
		job := newJob()
		job.Name = name
		if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := jobs.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := 0
	for event := range watcher.ResultChan() {
		version, err := strconv.Atoi(event.Object.(*batchv1.Job).ResourceVersion)
		if err != nil || version < last {
			t.Errorf("%s of version %d after %d: %v", event.Type, version, last, err)
		}
		last = version
		if event.Type == watch.Deleted {
			return
		}
	}
}

func TestWritesOfOutdatedObjectsConflict(t *testing.T) {
	jobs := newClient().BatchV1().Jobs("ns")
	created, err := jobs.Create(t.Context(), newJob(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Update(t.Context(), created.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(body string) error {
		_, err := jobs.Patch(t.Context(), "job", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	_, update := jobs.Update(t.Context(), created, metav1.UpdateOptions{})
	_, status := jobs.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	for what, err := range map[string]error{
		"update": update, "update of the status": status,
		"patch of a version": patch(`{"metadata":{"resourceVersion":"` + created.ResourceVersion + `"}}`),
		"patch of a UID":     patch(`{"metadata":{"uid":"other"}}`),
		"deletion of a UID": jobs.Delete(t.Context(), "job", metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("other")},
		}),
		"deletion of a version": jobs.Delete(t.Context(), "job", metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &created.ResourceVersion},
		}),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: error %v, want a conflict", what, err)
		}
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Error(err)
	}
	if err := jobs.Delete(t.Context(), "job", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &created.UID}}); err != nil {
		t.Error(err)
	}
}

func TestStatusIsASubresource(t *testing.T) {
	jobs := newClient(newJob()).BatchV1().Jobs("ns")
	changed := newJob()
	changed.Spec.Parallelism, changed.Status.Active = ptr.To[int32](7), 7
	check := func(what string, err error, parallelism, active int32) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := jobs.Get(t.Context(), "job", metav1.GetOptions{})
		if err != nil || *got.Spec.Parallelism != parallelism || got.Status.Active != active {
			t.Errorf("%s: parallelism %d, active %d, error %v; want %d and %d", what, *got.Spec.Parallelism, got.Status.Active, err, parallelism, active)
		}
	}
	_, err := jobs.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
	check("update of the status", err, 1, 7)
	changed.Status.Active = 8
	_, err = jobs.Update(t.Context(), changed, metav1.UpdateOptions{})
	check("update", err, 7, 7)
	both := []byte(`{"spec":{"parallelism":9},"status":{"active":9}}`)
	got, err := jobs.Patch(t.Context(), "job", types.MergePatchType, both, metav1.PatchOptions{})
	check("patch", err, 9, 7)
	if got.Status.Active != 7 {
		t.Errorf("the patch is answered with active %d", got.Status.Active)
	}
	both = []byte(`{"spec":{"parallelism":10},"status":{"active":10}}`)
	_, err = jobs.Patch(t.Context(), "job", types.MergePatchType, both, metav1.PatchOptions{}, "status")
	check("patch of the status", err, 9, 10)
}

func TestKindsWithoutStatusAndWithoutTypes(t *testing.T) {
	maps := newClient().CoreV1().ConfigMaps("ns")
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Data = map[string]string{"a": "b"}
	if _, err := maps.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}

	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "ThingList"})
	fakestore.Install(&client.Fake, client.Tracker())
	things := client.Resource(resource).Namespace("ns")
	thing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": "ns"}, "spec": "old", "status": "old",
	}}
	thing, err = things.Create(t.Context(), thing, metav1.CreateOptions{})
	if err != nil || thing.GetUID() == "" {
		t.Fatalf("UID %q, error %v", thing.GetUID(), err)
	}
	thing.Object["spec"], thing.Object["status"] = "new", "new"
	got, err := things.UpdateStatus(t.Context(), thing, metav1.UpdateOptions{})
	if err != nil || got.Object["spec"] != "old" || got.Object["status"] != "new" {
		t.Errorf("after an update of the status: %v, %v, error %v", got.Object["spec"], got.Object["status"], err)
	}
	if _, err := things.Update(t.Context(), thing, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}
