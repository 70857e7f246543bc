// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// passesGroup checks that the pods of a Job name the group. The scheduler of this cluster does not act on groups.
func (e *env) passesGroup(job *batchv1.Job, group string) {
	e.Helper()
	if g := job.Spec.Template.Spec.SchedulingGroup; g == nil || g.PodGroupName == nil || *g.PodGroupName != group {
		e.Errorf("scheduling group of Job %s: got %v, want %s", job.Name, g, group)
	}
}

// groupsExample applies an example that has objects of the scheduling API. They are written for Kubernetes 1.36; later versions have them
// in v1beta1, with other fields.
func (e *env) groupsExample(name string) {
	e.Helper()
	switch {
	case shared.groups == "":
		e.Skip("Kubernetes before 1.36 has no objects for groups of pods")
	case strings.Contains(shared.groups, "v1alpha2"):
		e.example(name)
	default:
		e.example(name, "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1", "disruptionMode: PodGroup", "disruptionMode: {all: {}}",
			"podGroupTemplateRef:\n    workload:\n", "workloadRef:\n", "      workloadName:", "    workloadName:",
			"      podGroupTemplateName:", "    templateName:")
	}
}

func TestRow7_1_26_PodsNameTheirGang(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.groupsExample("workload-gang")
	e.passesGroup(e.awaitJobs("gang-workers-0")["gang-workers-0"], "gang-workers")
	e.awaitCompleted("gang")
	if got := len(e.pods("gang-workers-0")); got != 6 {
		t.Errorf("there were %d pods, want 6", got)
	}
	for _, object := range []string{"workload/gang", "podgroup/gang-workers"} {
		if r := e.run("", "get", object); r.err != nil {
			t.Errorf("the user's own object is gone: %s", r)
		}
	}
}

func TestRow7_1_27_PodsNameTheirGroupAndPriorityClass(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.groupsExample("workload-preemption")
	jobs := e.awaitJobs("high-workers-0", "low-workers-0")
	for name, class := range map[string]string{"high": "parity-high", "low": "parity-low"} {
		job := jobs[name+"-workers-0"]
		e.passesGroup(job, name)
		if got := job.Spec.Template.Spec.PriorityClassName; got != class {
			t.Errorf("priority class of Job %s: got %q, want %s", job.Name, got, class)
		}
		e.awaitCompleted(name)
	}
}

func TestRow7_1_28_PodsNameTheirTopologyGroup(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.groupsExample("workload-topology")
	e.passesGroup(e.awaitJobs("rack-workers-0")["rack-workers-0"], "rack")
	js := e.awaitCompleted("rack")
	if got := js.Spec.FailurePolicy.MaxRestarts; got != 10 {
		t.Errorf("restart budget: got %d, want 10", got)
	}
}

// No node has the device, so the pods wait for it.
func TestRow7_1_29_SharedDevice(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.groupsExample("workload-dra")
	job := e.awaitJobs("devices-workers-0")["devices-workers-0"]
	e.passesGroup(job, "devices")
	e.eventually(func() string {
		pods := e.pods(job.Name)
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
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("argo-workflow")
	_, sets := e.as("workflow")
	client := sets.JobsetV1alpha2().JobSets(e.namespace)
	for example, want := range map[string]string{"argo-step-ok": "Completed", "argo-step-failing": "Failed"} {
		content, err := os.ReadFile(filepath.Join("testdata", "examples", example+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		js := &jobSet{}
		if err := yaml.UnmarshalStrict(content, js); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() string { // kube-apiserver takes a moment to learn of the role, and our server remembers a refusal for a while
			created, err := client.Create(t.Context(), js, metav1.CreateOptions{})
			if err != nil {
				return fmt.Sprintf("the workflow must create %s: %v", example, err)
			}
			js = created
			return ""
		})
		if r := e.run("", "wait", "--for=jsonpath={.status.terminalState}="+want, "jobset/"+js.Name, "--timeout=180s"); r.err != nil {
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
