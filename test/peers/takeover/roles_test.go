// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var (
	disaggregatedSets = disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsets")
	scalers           = disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsetrolescalers")
	definitions       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// rolesGate is the gate without which DisaggregatedSets are not served.
const rolesGate = "--feature-gates=DisaggregatedSet=true"

// TestDisaggregatedSets moves sets to our server, of which one gets its children there, and one is created there, and back. The
// program of upstream that this package runs has no DisaggregatedSets, so that the definition is the test's, and no controller of
// upstream has run for them.
func TestDisaggregatedSets(t *testing.T) {
	if cluster.Servers > 1 {
		t.Skip("the servers behind a balancer are not started again with another gate")
	}
	o := begin(t, 0, 0)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.RestartServer(t.Context(), rolesGate); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(cluster.Root, "artifacts", "components", "disaggregatedset", "rbac.yaml")
	if err := cluster.Script("kubectl", "apply", "--server-side", "-f", rules); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.RestartServer(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	define(t, disaggregatedSets, "DisaggregatedSet")
	define(t, scalers, "DisaggregatedSetRoleScaler")
	o.kinds = append(o.kinds, disaggregatedSets, scalers)
	o.createRoles(t, "early")
	o.note(t)

	migrate(t, "to-server")
	o.unchanged(t, "after the move")
	controller := startController(t, rolesGate)
	o.awaitPods(t, 6)
	o.scaleRole(t, "early", 2)
	o.awaitPods(t, 8)
	o.createRoles(t, "late")
	o.awaitPods(t, 14)
	if err := controller.Terminate(); err != nil {
		t.Fatal(err)
	}
	o.note(t)

	migrate(t, "to-crd")
	now := o.stored(t)
	if got, want := now["disaggregatedsets/early"].GetUID(), o.sets["disaggregatedsets/early"].GetUID(); got != want {
		t.Errorf("the set that was moved has the UID %s after the way back, want %s", got, want)
	}
	if now["disaggregatedsets/late"].GetUID() == o.sets["disaggregatedsets/late"].GetUID() {
		t.Error("the set that was created since has the same UID: the test does not see what it is to see")
	}
	o.sets = now
	o.unchanged(t, "after the way back")
	o.owned(t)
	for name, want := range map[string]int64{"early-decode": 2, "late-decode": 1} {
		if got, _, err := unstructured.NestedInt64(now[scalers.Resource+"/"+name].Object, "spec", "replicas"); err != nil || got != want {
			t.Errorf("the scaler %s has %d replicas in its definition (%v), want %d", name, got, err, want)
		}
	}

	migrate(t, "to-server")
	startController(t, rolesGate)
	o.steady(t, "under our controller again")
	for _, name := range []string{"early", "late"} {
		o.delete(t, disaggregatedSets, name)
	}
	o.awaitPods(t, 0)
	migrate(t, "to-crd")
	if err := upstream.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// define creates the definition of a kind, with any fields. It is deleted when the test has ended.
func define(t *testing.T, resource schema.GroupVersionResource, kind string) {
	t.Helper()
	name, singular := resource.GroupResource().String(), strings.ToLower(kind)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": resource.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": resource.Resource, "singular": singular, "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": resource.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if _, err := cluster.Dynamic.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, client := context.WithoutCancel(t.Context()), cluster.Dynamic.Resource(definitions)
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		framework.EventuallyNoProblem(t, func() string {
			if _, err := client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("definition %s is not deleted with its objects: %v", name, err)
			}
			return ""
		})
	})
}

// createRoles creates a set with six pods, as soon as it is served: two groups of two pods, and one that a scaler scales.
func (o *takeover) createRoles(t *testing.T, name string) {
	t.Helper()
	scaled := o.role("decode", 1)
	scaled["scaling"] = map[string]any{"mode": "External"}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"roles": []any{o.role("prefill", 2), scaled}}}}
	set.SetGroupVersionKind(disaggregatedSets.GroupVersion().WithKind("DisaggregatedSet"))
	set.SetName(name)
	framework.Eventually(t, "the set is created", func(ctx context.Context) error {
		_, err := cluster.Dynamic.Resource(disaggregatedSets).Namespace(o.namespace).Create(ctx, set.DeepCopy(), metav1.CreateOptions{})
		return err
	})
}

// scaleRole scales the role decode as an autoscaler does.
func (o *takeover) scaleRole(t *testing.T, set string, groups int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, groups)
	framework.Eventually(t, "the role is scaled", func(ctx context.Context) error {
		return o.patch(ctx, scalers, set+"-decode", patch, "scale")
	})
}

// role returns a role with so many groups of two pods, which run until they are deleted.
func (o *takeover) role(name string, groups int64) map[string]any {
	annotations := map[string]any{}
	for key, value := range running {
		annotations[key] = value
	}
	return map[string]any{"name": name, "spec": map[string]any{
		"replicas": groups,
		"leaderWorkerTemplate": map[string]any{"size": int64(2), "workerTemplate": map[string]any{
			"metadata": map[string]any{"annotations": annotations},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none"}}},
		}},
	}}
}
