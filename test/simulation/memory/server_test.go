// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

var (
	version = schema.GroupVersion{Group: "example.com", Version: "v1"}
	things  = version.WithResource("things")
)

func thing(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": "Thing", "metadata": map[string]any{"namespace": "ns", "name": name}, "spec": map[string]any{"size": int64(1)},
	}}
}

func newClient(t *testing.T, s *Server) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.ClientConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(things).Namespace("ns")
}

func TestServerAnswersAsRealOnesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer()
		client, ctx := newClient(t, s), t.Context()
		found, err := discovery.NewDiscoveryClientForConfig(s.ClientConfig(nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := found.ServerResourcesForGroupVersionWithContext(ctx, version.String()); !apierrors.IsNotFound(err) {
			t.Errorf("discovery of an absent API: %v", err)
		}
		if _, err := client.Create(ctx, thing("a"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			t.Errorf("creating in an absent API: %v", err)
		}
		s.Serve(version, map[string]string{"things": "Thing"})
		if list, err := found.ServerResourcesForGroupVersionWithContext(ctx, version.String()); err != nil || len(list.APIResources) != 1 {
			t.Errorf("discovery: %v, %v", list, err)
		}
		created, err := client.Create(ctx, thing("a"), metav1.CreateOptions{})
		if err != nil || created.GetUID() == "" {
			t.Fatalf("created %v, %v", created, err)
		}
		if _, err := client.Create(ctx, thing("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("creating again: %v", err)
		}
		patched, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["x/y"]},"spec":{"size":2},"status":{"no":1}}`), metav1.PatchOptions{})
		if size, _, _ := unstructured.NestedInt64(patched.Object, "spec", "size"); err != nil || size != 2 || patched.Object["status"] != nil {
			t.Errorf("patched to %v, %v", patched, err)
		}
		_, err = client.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`), metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			t.Errorf("patching an old version: %v", err)
		}
		applied := []byte(`{"apiVersion":"example.com/v1","kind":"Thing","status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
		if _, err := client.Patch(ctx, "a", types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "m", Force: ptr.To(true)}, "status"); err != nil {
			t.Errorf("applying: %v", err)
		}
		if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if a, err := client.Get(ctx, "a", metav1.GetOptions{}); err != nil || a.GetDeletionTimestamp() == nil || a.Object["status"] == nil {
			t.Errorf("the object that stays is %v, %v", a, err)
		}
		if _, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an object that is gone: %v", err)
		}
	})
}

func TestWatchesLagAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer()
		s.Serve(version, map[string]string{"things": "Thing"})
		client := newClient(t, s)
		events, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		s.SetLag(10 * time.Second)
		s.Create(things.GroupResource(), thing("a"))
		begin := time.Now()
		if e := <-events.ResultChan(); e.Type != watch.Added || time.Since(begin) != 10*time.Second {
			t.Errorf("%s after %s", e.Type, time.Since(begin))
		}
		s.EndWatches(true)
		if e := <-events.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("%s %v", e.Type, e.Object)
		}
		if _, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}); !apierrors.IsResourceExpired(err) {
			t.Errorf("watching from an old version: %v", err)
		}
		events.Stop()
		synctest.Wait()
		if n := s.Watches(things.GroupResource()); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, weather := NewServer(), NewWeather(1)
		s.Trouble = weather.Trouble
		s.Serve(version, map[string]string{"things": "Thing"})
		client, begin := newClient(t, s), time.Now()
		weather.Set("create", Trouble{Broken: true, Lost: true})
		if _, err := client.Create(t.Context(), thing("lost"), metav1.CreateOptions{}); err == nil || s.Get(things.GroupResource(), "ns", "lost") == nil {
			t.Errorf("a lost answer: %v", err)
		}
		weather.Set("create", Trouble{Broken: true, Late: time.Second})
		if _, err := client.Create(t.Context(), thing("late"), metav1.CreateOptions{}); err == nil || s.Get(things.GroupResource(), "ns", "late") != nil {
			t.Errorf("a late request: %v", err)
		}
		time.Sleep(2 * time.Second)
		if s.Get(things.GroupResource(), "ns", "late") == nil {
			t.Error("the late request has not arrived")
		}
		weather.Set("create", Trouble{Code: http.StatusForbidden})
		if _, err := client.Create(t.Context(), thing("x"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || weather.Fails("create") != 0 {
			t.Errorf("a refusal: %v, for %s", err, weather.Fails("create"))
		}
		weather.Set("list", Trouble{Hang: true})
		if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsTimeout(err) || time.Since(begin) < hangs {
			t.Errorf("a request that hangs: %v after %s", err, time.Since(begin))
		}
		weather.Clear()
		if list, err := client.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
			t.Errorf("a list after the trouble: %v, %v", list, err)
		}
	})
}
