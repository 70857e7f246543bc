// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// domains are the domains of a test.
type domains struct {
	topology string
	// ofNode are the domains of the nodes, by name.
	ofNode map[string]string
	// chosen are the domains of the Jobs of a set, by index.
	chosen []string
}

// ownDomains makes so many domains of a topology, of two nodes each, which have further labels and take only the pods of exampleOnOwnNodes.
func (e *env) ownDomains(topology string, n int, labels map[string]string) *domains {
	e.Helper()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("40"),
		"example.com/tpu": resource.MustParse("4"),
	}
	d := &domains{topology: topology, ofNode: map[string]string{}}
	for i := range 2 * n {
		domain := fmt.Sprintf("%s-%d", e.namespace, i/2)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", e.namespace, i), Labels: map[string]string{"example.com/only": e.namespace, topology: domain},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/only-for", Value: e.namespace, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
		}
		maps.Copy(node.Labels, labels)
		if _, err := shared.Kube.CoreV1().Nodes().Create(e.Context(), node, metav1.CreateOptions{}); err != nil {
			e.Fatal(err)
		}
		e.Cleanup(func() { e.run("", "delete", "node", node.Name, "--ignore-not-found") })
		d.ofNode[node.Name] = domain
	}
	for name := range d.ofNode {
		e.eventually(func() string { // nodes have one more taint until they are ready
			node, err := shared.Kube.CoreV1().Nodes().Get(e.Context(), name, metav1.GetOptions{})
			if err != nil || len(node.Spec.Taints) != 1 || len(node.Status.Conditions) == 0 || node.Status.Allocatable.Cpu().Value() != 8 {
				return fmt.Sprintf("node %s is not ready: %v, %v", name, node, err)
			}
			return ""
		})
	}
	return d
}

// exampleOnOwnNodes applies a manifest of testdata/examples whose pods run on the nodes of ownDomains, until they are ended.
func (e *env) exampleOnOwnNodes(name string, changes ...string) {
	e.Helper()
	const spec, tolerations = "            restartPolicy: Never\n", "            tolerations: [{key: example.com/only-for, operator: Equal, value: %s}]\n"
	changes = append(changes, spec, spec+fmt.Sprintf(tolerations, e.namespace), `jobset-apiserver.io/kwok-run-seconds: "1"`, "jobset-apiserver.io/kwok-outcome: running")
	e.example(name, changes...)
}

// ownPods is a change of a manifest by which its pods ask for the nodes of ownDomains, and for further fields of their specs.
func (e *env) ownPods(fields ...string) []string {
	fields = append(fields, "nodeSelector: {example.com/only: "+e.namespace+"}", "containers:\n")
	return []string{"            containers:\n", "            " + strings.Join(fields, "\n            ")}
}

// awaitDomains waits until so many pods of each of the Jobs run in a domain of their own, and returns the domains of
// the Jobs in order. The Jobs must have had a domain before they had pods.
func (e *env) awaitDomains(set string, d *domains, pods int, jobs ...string) (chosen []string) {
	e.Helper()
	e.awaitJobs(jobs...)
	e.eventually(func() string {
		chosen = nil
		placement := e.get(set).Status.Placement
		if placement == nil || len(placement.ReplicatedJobs) != 1 || len(placement.ReplicatedJobs[0].Jobs) != len(jobs) {
			return fmt.Sprintf("placement of %s: %v", set, placement)
		}
		found := e.jobs()
		for i, name := range jobs {
			domain := placement.ReplicatedJobs[0].Jobs[i].Domain
			if slices.Contains(chosen, domain) || domain == "" {
				return fmt.Sprintf("Job %s has the domain %q, and those before have %v", name, domain, chosen)
			}
			chosen = append(chosen, domain)
			if found[name] == nil || found[name].Spec.Template.Spec.NodeSelector[d.topology] != domain {
				return fmt.Sprintf("Job %s has not the node selector of %s: %v", name, domain, found[name])
			}
			if problem := e.allIn(name, domain, d, pods); problem != "" {
				return problem
			}
		}
		return ""
	})
	return chosen
}

// allIn returns what is wrong if not exactly so many pods of a Job run, all of them in a domain.
func (e *env) allIn(job, domain string, d *domains, pods int) string {
	e.Helper()
	n := 0
	for _, pod := range e.pods(job) {
		if pod.Spec.NodeName != "" && d.ofNode[pod.Spec.NodeName] != domain {
			return fmt.Sprintf("pod %s is on %s, want a node of %s", pod.Name, pod.Spec.NodeName, domain)
		}
		if pod.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	if n != pods {
		return fmt.Sprintf("%d pods of %s run, want %d", n, job, pods)
	}
	return ""
}

func TestRow7_1_02_OneDomainForEachJob(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	t.Run("chosen by the controller", func(t *testing.T) {
		e := newEnv(t)
		before := e.exclusive(corev1.LabelTopologyZone, "0")
		if _, err := e.sets.Restart(t.Context(), "exclusive", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.awaitAttempt(1, exclusiveJobs...)
		if diff := cmp.Diff(before.chosen, e.awaitDomains("exclusive", before, 2, exclusiveJobs...)); diff != "" {
			t.Errorf("domains before and after the restart (-before +after):\n%s", diff)
		}
		e.succeed("", 6)
		e.awaitCompleted("exclusive")
	})
	t.Run("with a negative priority", func(t *testing.T) {
		e := newEnv(t)
		e.apply("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + e.namespace + "}\nvalue: -10\n")
		t.Cleanup(func() { e.run("", "delete", "priorityclass", e.namespace) })
		e.exclusive("example.com/zone", "n10", "priorityClassName: "+e.namespace)
		e.succeed("", 6)
		e.awaitCompleted("exclusive")
	})
	t.Run("by node selector", func(t *testing.T) {
		e := newEnv(t)
		e.example("simple-node-selector-placement")
		for name, job := range e.awaitJobs("placed-workers-0", "placed-workers-1") {
			pod := job.Spec.Template.Spec
			want := map[string]string{jobsetv1alpha2.NamespacedJobKey: e.namespace + "_" + name}
			if diff := cmp.Diff(want, pod.NodeSelector); diff != "" {
				t.Errorf("node selector of %s (-want +got):\n%s", name, diff)
			}
			toleration := []corev1.Toleration{{
				Key: jobsetv1alpha2.NoScheduleTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
			}}
			if diff := cmp.Diff(toleration, pod.Tolerations); diff != "" {
				t.Errorf("tolerations of %s (-want +got):\n%s", name, diff)
			}
		}
	})
}

var exclusiveJobs = []string{"exclusive-workers-0", "exclusive-workers-1", "exclusive-workers-2"}

// exclusive applies the example with a domain for each of its Jobs, and checks them and the labels of their pods. The
// fields are further ones of the pods.
func (e *env) exclusive(topology, priority string, fields ...string) *domains {
	e.Helper()
	d := e.ownDomains(topology, 3, nil)
	e.exampleOnOwnNodes("simple-exclusive-placement", append(e.ownPods(fields...), corev1.LabelTopologyZone, topology)...)
	d.chosen = e.awaitDomains("exclusive", d, 2, exclusiveJobs...)
	for name, job := range e.jobs() {
		e.marked(job, topology)
		for _, pod := range e.pods(name) {
			if pod.Labels[jobsetv1alpha2.JobKey] == "" || pod.Labels[jobsetv1alpha2.PriorityKey] != priority {
				e.Errorf("pod %s, which must have the priority %q: labels %v", pod.Name, priority, pod.Labels)
			}
		}
	}
	return d
}

// marked checks that a Job and its pods have the annotation with the topology.
func (e *env) marked(job *batchv1.Job, topology string) {
	e.Helper()
	for where, annotations := range map[string]map[string]string{"Job": job.Annotations, "pods": job.Spec.Template.Annotations} {
		if got := annotations[jobsetv1alpha2.ExclusiveKey]; got != topology {
			e.Errorf("%s of %s: topology %q, want %s", where, job.Name, got, topology)
		}
	}
}

// Kueue is not here. What it goes by can be seen.
func TestRow7_1_25_TPUMultislice(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	const topology = "cloud.google.com/gke-nodepool"
	e := newEnv(t)
	pools := e.ownDomains(topology, 2, map[string]string{"example.com/accelerator": "tpu-v5", "example.com/topology": "2x4"})
	e.exampleOnOwnNodes("tpu-multislice")
	if got := e.get("multislice").Labels["kueue.x-k8s.io/queue-name"]; got != "multislice-queue" {
		t.Errorf("queue: got %q", got)
	}
	e.awaitDomains("multislice", pools, 2, "multislice-slice-0", "multislice-slice-1")
	nodes := map[string]string{}
	for name, job := range e.jobs() {
		e.marked(job, topology)
		for _, pod := range e.pods(name) {
			if !pod.Spec.HostNetwork || pod.Spec.NodeSelector["example.com/accelerator"] != "tpu-v5" || pod.Spec.NodeSelector["example.com/topology"] != "2x4" {
				t.Errorf("pod %s: host network %t, node selector %v", pod.Name, pod.Spec.HostNetwork, pod.Spec.NodeSelector)
			}
			if limit := pod.Spec.Containers[0].Resources.Limits["example.com/tpu"]; limit.Value() != 4 {
				t.Errorf("accelerators of pod %s: got %s, want 4", pod.Name, limit.String())
			}
			if other, found := nodes[pod.Spec.NodeName]; found {
				t.Errorf("pods %s and %s share node %s", pod.Name, other, pod.Spec.NodeName)
			}
			nodes[pod.Spec.NodeName] = pod.Name
		}
	}
	e.succeed("", 4)
	e.awaitCompleted("multislice")
}
