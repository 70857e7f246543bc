// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const (
	rolesComponent = "artifacts/components/disaggregatedset"
	rolesGate      = "--feature-gates=DisaggregatedSet=true"
)

// render builds an overlay, with components, and returns its objects by kind and name.
func render(t *testing.T, overlay string, components ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	dir, root := t.TempDir(), filepath.Join("..", "..", "..")
	relative := func(path string) string {
		absolute, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		result, err := filepath.Rel(dir, absolute)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	content := fmt.Sprintf("resources: [%s]\n", relative(overlay))
	for _, component := range components {
		content += fmt.Sprintf("components: [%s]\n", relative(component))
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(plane.Kustomize(t, dir)), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "" {
			objects[object.GetKind()+" "+object.GetName()] = object
		}
	}
}

// args returns the flags of the first container of a workload.
func args(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("%s has no containers (%v)", object.GetName(), err)
	}
	list, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDisaggregatedSetComponent makes sure that the component adds the gate to both programs, the APIService and the
// roles, and nothing else.
func TestDisaggregatedSetComponent(t *testing.T) {
	tier.OnRequest(t, "more cases of the manifests")
	for _, overlay := range []string{embeddedOverlay, externalOverlay} {
		plain, with := render(t, overlay), render(t, overlay, rolesComponent)
		var added []string
		programs := 0
		for _, name := range slices.Sorted(maps.Keys(with)) {
			before, found := plain[name]
			switch kind := with[name].GetKind(); {
			case !found:
				added = append(added, name)
			case kind == "Deployment" || kind == "StatefulSet":
				programs++
				if diff := cmp.Diff(append(args(t, before), rolesGate), args(t, with[name])); diff != "" {
					t.Errorf("%s: flags of %s (-want +got):\n%s", overlay, name, diff)
				}
			default:
				if diff := cmp.Diff(before.Object, with[name].Object); diff != "" {
					t.Errorf("%s: %s changes:\n%s", overlay, name, diff)
				}
			}
		}
		want := []string{
			"APIService v1.disaggregatedset.x-k8s.io", "ClusterRole disaggregatedset-edit", "ClusterRole disaggregatedset-view",
			"ClusterRole jobset-controller-manager:disaggregatedsets", "ClusterRoleBinding jobset-controller-manager:disaggregatedsets",
		}
		if diff := cmp.Diff(want, added); diff != "" || programs != 2 {
			t.Errorf("%s: %d programs; added (-want +got):\n%s", overlay, programs, diff)
		}
		other := with["APIService v1.leaderworkerset.x-k8s.io"]
		for _, field := range []string{"service", "groupPriorityMinimum", "versionPriority", "version"} {
			wantField, _, _ := unstructured.NestedFieldCopy(other.Object, "spec", field)
			got, _, _ := unstructured.NestedFieldCopy(with["APIService v1.disaggregatedset.x-k8s.io"].Object, "spec", field)
			if diff := cmp.Diff(wantField, got); diff != "" {
				t.Errorf("%s: %s of the APIService (-want +got):\n%s", overlay, field, diff)
			}
		}
	}
}

// TestDisaggregatedSetRoles applies the roles of the component: kube-apiserver must let the controller and users do what the server serves.
func TestDisaggregatedSetRoles(t *testing.T) {
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), rolesGate)...)
	client, err := discovery.NewDiscoveryClientForConfig(server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.ServerResourcesForGroupVersion("disaggregatedset.x-k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(rolesComponent, "rbac.yaml")
	if out, err := plane.Kubectl(t, "apply", "--server-side", "-f", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		ctx, client := context.WithoutCancel(t.Context()), plane.Kube.RbacV1()
		const controller = "jobset-controller-manager:disaggregatedsets"
		errs := []error{client.ClusterRoleBindings().Delete(ctx, controller, metav1.DeleteOptions{})}
		for _, name := range []string{controller, "disaggregatedset-view", "disaggregatedset-edit"} {
			errs = append(errs, client.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
	bindRoles(t, map[string][]string{"roles-viewer": {"disaggregatedset-view"}, "roles-editor": {"disaggregatedset-view", "disaggregatedset-edit"}})
	for _, resource := range served.APIResources {
		name, sub, _ := strings.Cut(resource.Name, "/")
		for _, verb := range resource.Verbs {
			reads := slices.Contains([]string{"get", "list", "watch"}, verb)
			mayDo(t, "roles-viewer", verb, name, sub, reads)
			mayDo(t, "roles-editor", verb, name, sub, reads || sub != "status")
		}
	}
	const controller = "system:serviceaccount:jobset-system:jobset-controller-manager"
	for question, want := range map[string]bool{
		"watch disaggregatedsets": true, "update disaggregatedsets/status": true, "update disaggregatedsets/finalizers": true,
		"create disaggregatedsetrolescalers": true, "delete disaggregatedsetrolescalers": true, "update disaggregatedsetrolescalers/status": true,
		"update disaggregatedsets": false, "delete disaggregatedsets": false, "patch disaggregatedsets": false, "patch disaggregatedsets/status": false,
		"update disaggregatedsetrolescalers": false, "update disaggregatedsetrolescalers/scale": false, "deletecollection disaggregatedsetrolescalers": false,
	} {
		verb, resource, _ := strings.Cut(question, " ")
		name, sub, _ := strings.Cut(resource, "/")
		mayDo(t, controller, verb, name, sub, want)
	}
}

// bindRoles gives users roles. Users get them through aggregated roles, which a controller fills; none runs here, so
// that bindings name them.
func bindRoles(t *testing.T, roles map[string][]string) {
	t.Helper()
	client := plane.Kube.RbacV1().ClusterRoleBindings()
	for user, names := range roles {
		for _, role := range names {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: user + ":" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}
			if _, err := client.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := client.Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// mayDo checks whether kube-apiserver allows a user a verb.
func mayDo(t *testing.T, user, verb, resource, subresource string, want bool) {
	t.Helper()
	// The authorizer sees new roles a moment later.
	framework.Eventually(t, "the answer is right", func(ctx context.Context) error {
		review, err := plane.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: verb, Group: "disaggregatedset.x-k8s.io", Resource: resource, Subresource: subresource,
			}},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("%s %s %s/%s is allowed: %t, want %t", user, verb, resource, subresource, review.Status.Allowed, want)
		}
		return err
	})
}
