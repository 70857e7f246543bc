// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestFeatureGates stores fields behind gates with the gates on, and looks at them after a restart with the gates off.
func TestFeatureGates(t *testing.T) {
	flags := framework.Embedded(framework.ShortDir(t))
	gates := "--feature-gates=JobSetActiveDeadlineSeconds=true,ExecutionAttemptsTracking=true,MutablePodResourcesForSuspendedJobSets=true"
	server := plane.StartServer(t, append(flags, gates)...)
	on := newEnv(t, server, server.Config(t))
	content := fmt.Sprintf(manifest, "a") + "  activeDeadlineSeconds: 60\n  suspend: true\n"
	if _, err := on.apply(t, "a", content, "kubectl", metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	js := on.get(t, "a")
	started := metav1.Unix(1_000_000_000, 0)
	js.Status.StartTime, js.Status.ExecutionAttempts = &started, ptr.To[int32](3)
	if _, err := on.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	on.checkResources(t, true)
	server.Stop(t)

	server = plane.StartServer(t, flags...)
	off := newEnv(t, server, server.Config(t))
	kept := *on
	kept.server, kept.config, kept.typed = server, server.Config(t), clientset(t, server.Config(t)).JobSets(on.namespace)
	js = kept.get(t, "a")
	js.Status.ExecutionAttempts = ptr.To[int32](9)
	js, err := kept.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"60", "3", started.UTC().String()}
	if diff := cmp.Diff(want, gated(js)); diff != "" {
		t.Errorf("stored with the gates on (-want +got):\n%s", diff)
	}
	kept.checkResources(t, false)

	first, err := off.apply(t, "b", strings.Replace(content, "name: a}", "name: b}", 1), "kubectl", metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "", ""}, gated(first)); diff != "" {
		t.Errorf("created with the gates off (-want +got):\n%s", diff)
	}
	second, err := off.apply(t, "b", strings.Replace(content, "name: a}", "name: b}", 1), "kubectl", metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if second.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying a dropped field again is a write:\n%s", cmp.Diff(first, second))
	}
}

func gated(js *jobsetv1alpha2.JobSet) []string {
	out := []string{"", "", ""}
	if v := js.Spec.ActiveDeadlineSeconds; v != nil {
		out[0] = fmt.Sprint(*v)
	}
	if v := js.Status.ExecutionAttempts; v != nil {
		out[1] = fmt.Sprint(*v)
	}
	if v := js.Status.StartTime; v != nil {
		out[2] = v.UTC().String()
	}
	return out
}

func (e *env) checkResources(t *testing.T, allowed bool) {
	t.Helper()
	js := e.get(t, "a")
	container := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	if !allowed {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	}
	_, err := e.typed.Update(t.Context(), js, metav1.UpdateOptions{})
	if allowed && err != nil {
		t.Error(err)
	}
	if !allowed && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "containers[0].resources.requests")) {
		t.Errorf("got %v, want a refusal that names containers[0].resources.requests", err)
	}
}

// testServedFeatureGates reads the document as a user without any role but those of all users.
func testServedFeatureGates(t *testing.T, e *env) {
	user, err := plane.AddUser("nobody-special")
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/jobset.x-k8s.io/v1alpha2/featuregates"
	for name, config := range map[string]*rest.Config{"through kube-apiserver": user.Config(), "directly": e.server.Config(t)} {
		code, body := framework.Get(t, config, path)
		var document struct{ FeatureGates map[string]bool }
		if err := json.Unmarshal([]byte(body), &document); code != http.StatusOK || err != nil {
			t.Fatalf("%s: %d %s", name, code, body)
		}
		if on, known := document.FeatureGates["ElasticJobSet"]; !known || on {
			t.Errorf("%s: gates are %v, want ElasticJobSet off", name, document.FeatureGates)
		}
	}
	for _, other := range []string{"/x", "?watch=true"} {
		if code, body := framework.Get(t, user.Config(), path+other); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", other, code, body)
		}
	}
}
