// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// passesGroup checks that the pods of a Job name the group. The scheduler of this cluster does not act on groups.
func (w *world) passesGroup(job *batchv1.Job, group string) {
	w.Helper()
	if g := job.Spec.Template.Spec.SchedulingGroup; g == nil || g.PodGroupName == nil || *g.PodGroupName != group {
		w.Errorf("scheduling group of Job %s: got %v, want %s", job.Name, g, group)
	}
}

func TestRow7_1_26_Gang(t *testing.T) {
	w := newWorld(t)
	w.example("workload-gang")
	w.passesGroup(w.awaitJobs("gang-workers-0")["gang-workers-0"], "gang-workers")
	w.awaitCompleted("gang")
	if got := len(w.pods("gang-workers-0")); got != 6 {
		t.Errorf("there were %d pods, want 6", got)
	}
	for _, object := range []string{"workload/gang", "podgroup/gang-workers"} {
		if r := w.run("", "get", object); r.err != nil {
			t.Errorf("the user's own object is gone: %s", r)
		}
	}
}

func TestRow7_1_27_Preemption(t *testing.T) {
	w := newWorld(t)
	w.example("workload-preemption")
	jobs := w.awaitJobs("high-workers-0", "low-workers-0")
	for name, class := range map[string]string{"high": "parity-high", "low": "parity-low"} {
		job := jobs[name+"-workers-0"]
		w.passesGroup(job, name)
		if got := job.Spec.Template.Spec.PriorityClassName; got != class {
			t.Errorf("priority class of Job %s: got %q, want %s", job.Name, got, class)
		}
		w.awaitCompleted(name)
	}
}

func TestRow7_1_28_TopologyConstraint(t *testing.T) {
	w := newWorld(t)
	w.example("workload-topology")
	w.passesGroup(w.awaitJobs("rack-workers-0")["rack-workers-0"], "rack")
	js := w.awaitCompleted("rack")
	if got := js.Spec.FailurePolicy.MaxRestarts; got != 10 {
		t.Errorf("restart budget: got %d, want 10", got)
	}
}

// No node has the device, so the pods wait for it.
func TestRow7_1_29_SharedDevice(t *testing.T) {
	w := newWorld(t)
	w.example("workload-dra")
	job := w.awaitJobs("devices-workers-0")["devices-workers-0"]
	w.passesGroup(job, "devices")
	w.eventually(func() string {
		pods := w.pods(job.Name)
		if len(pods) != 2 {
			return fmt.Sprintf("there are %d pods, want 2", len(pods))
		}
		for _, pod := range pods {
			claims, used := pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims
			if len(claims) != 1 || *claims[0].ResourceClaimName != "shared-device" || len(used) != 1 || used[0].Name != "device" {
				return fmt.Sprintf("claims of pod %s are %v, those of its container %v", pod.Name, claims, used)
			}
		}
		return ""
	})
}

func TestRow7_1_30_ArgoWorkflow(t *testing.T) {
	w := newWorld(t)
	w.example("argo-workflow")
	_, sets := w.as("workflow")
	client := sets.JobsetV1alpha2().JobSets(w.namespace)
	for example, want := range map[string]string{"argo-step-ok": "Completed", "argo-step-failing": "Failed"} {
		content, err := os.ReadFile(filepath.Join("testdata", "examples", example+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		js := &jobSet{}
		if err := yaml.UnmarshalStrict(content, js); err != nil {
			t.Fatal(err)
		}
		if js, err = client.Create(t.Context(), js, metav1.CreateOptions{}); err != nil {
			t.Fatalf("the workflow must create %s: %v", example, err)
		}
		if r := w.run("", "wait", "--for=jsonpath={.status.terminalState}="+want, "jobset/"+js.Name, "--timeout=60s"); r.err != nil {
			t.Error(r)
		}
		if _, err := client.Get(t.Context(), js.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("the workflow must read %s: %v", js.Name, err)
		}
		if err := client.Delete(t.Context(), js.Name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deleting as the workflow: %v, want that it is forbidden", err)
		}
	}
}

func TestRow7_1_31_Prometheus(t *testing.T) {
	w := newWorld(t)
	w.example("prometheus")
	w.example("simple-ttl-after-finished")
	w.awaitGone("short-lived")
	bindings := shared.kube.RbacV1().ClusterRoleBindings()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parity-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "prometheus", Namespace: w.namespace}},
	}
	if code, _ := w.scrape(); code != http.StatusForbidden {
		t.Errorf("without the role: status %d, want 403", code)
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("jobset_completed_total{jobset_name=%q,namespace=%q} 1", "short-lived", w.namespace)
	w.eventually(func() string {
		if code, body := w.scrape(); code != http.StatusOK || !strings.Contains(body, want) {
			return fmt.Sprintf("status %d, no line %s", code, want)
		}
		return ""
	})
}

// scrape asks the controller for its metrics, with a token of the service account of the example.
func (w *world) scrape() (int, string) {
	w.Helper()
	token, err := shared.kube.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), "prometheus",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	port, err := os.ReadFile(filepath.Join(shared.Dir, "ports", "controller-metrics"))
	if err != nil {
		w.Fatal(err)
	}
	url := "https://127.0.0.1:" + strings.TrimSpace(string(port)) + "/metrics"
	request, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), http.MethodGet, url, nil)
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	// The certificate is self-signed, as upstream's is, whose monitor does not verify it either.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response.StatusCode, string(body)
}
