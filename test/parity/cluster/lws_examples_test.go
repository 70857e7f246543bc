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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestLWSRow6_1_01_Sample(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.example("lws-sample")
	const name = "leaderworkerset-sample"
	set := e.awaitAvailable(name, 3, 12)
	if got, want := set.Status.HPAPodSelector, "leaderworkerset.sigs.k8s.io/name=leaderworkerset-sample,leaderworkerset.sigs.k8s.io/worker-index=0"; got != want {
		t.Errorf("selector for autoscalers: got %q, want %q", got, want)
	}
	children := e.awaitStatefulSets(name, name+"-0", name+"-1", name+"-2")
	leader := children[name]
	got := fmt.Sprintf("%d replicas, partition %d, service %s, labels %v, annotation %s, %s", *leader.Spec.Replicas, *leader.Spec.UpdateStrategy.RollingUpdate.Partition,
		leader.Spec.ServiceName, leader.Labels, leader.Annotations[leaderworkersetv1.ReplicasAnnotationKey], leader.Spec.PodManagementPolicy)
	if want := fmt.Sprintf("3 replicas, partition 0, service %s, labels %v, annotation 3, Parallel", name,
		map[string]string{leaderworkersetv1.SetNameLabelKey: name, leaderworkersetv1.RevisionKey: "6859c84d69"}); got != want {
		t.Errorf("the leader StatefulSet: got %s, want %s", got, want)
	}
	workers := children[name+"-1"]
	if owner := metav1.GetControllerOf(workers); owner == nil || owner.Kind != "Pod" || owner.Name != name+"-1" || *workers.Spec.Replicas != 3 || workers.Spec.Ordinals.Start != 1 {
		t.Errorf("the StatefulSet of workers: owner %v, replicas %d, ordinals %v", owner, *workers.Spec.Replicas, workers.Spec.Ordinals)
	}
	pods := e.podsOf(name)
	address := name + "-1." + name + "." + e.namespace
	for pod, index := range map[string]string{name + "-1": "0", name + "-1-3": "3"} {
		want := map[string]string{"LWS_LEADER_ADDRESS": address, "LWS_GROUP_SIZE": "4", "LWS_WORKER_INDEX": index}
		if diff := cmp.Diff(want, environment(pods[pod])); diff != "" {
			t.Errorf("environment of %s (-want +got):\n%s", pod, diff)
		}
	}
	if got := pods[name+"-1-3"].Annotations[leaderworkersetv1.LeaderPodNameAnnotationKey]; got != name+"-1" {
		t.Errorf("leader of a worker: got %q", got)
	}
	if pods[name+"-1"].Labels[leaderworkersetv1.GroupKeyLabelKey] != pods[name+"-1-3"].Labels[leaderworkersetv1.GroupKeyLabelKey] {
		t.Error("leader and worker have different keys of their group")
	}
	revisions, err := shared.Kube.AppsV1().ControllerRevisions(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: leaderworkersetv1.SetNameLabelKey})
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(revisions.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, set) }) // StatefulSets have revisions, too
	if len(own) != 1 || own[0].Name != name+"-6859c84d69-1" || own[0].Revision != 1 {
		t.Errorf("revisions: %v", own)
	}
	e.awaitServices(name)
}

func TestLWSRow6_1_02_LeaderTemplate(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("multi", 2, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.LeaderTemplate = spec.LeaderWorkerTemplate.WorkerTemplate.DeepCopy()
		spec.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Image = "example.com/leader:1"
	}))
	e.awaitAvailable("multi", 2, 4)
	pods := e.podsOf("multi")
	if leader, worker := pods["multi-0"].Spec.Containers[0].Image, pods["multi-0-1"].Spec.Containers[0].Image; leader != "example.com/leader:1" || worker != "example.com/main:1" {
		t.Errorf("images %s and %s", leader, worker)
	}
}

func TestLWSRow6_1_04_RolloutStrategy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("rollout", 4, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{
			MaxUnavailable: ptr.To(intstr.FromInt32(2)), MaxSurge: ptr.To(intstr.FromInt32(2)),
		}
	}))
	e.awaitAvailable("rollout", 4, 8)
	seen := e.record("rollout")
	e.update("rollout", newImage("example.com/main:2"))
	e.awaitAvailable("rollout", 4, 8)
	e.eventually(func() string {
		if seen.Peak() != 6 {
			return fmt.Sprintf("the leader StatefulSet had %d replicas at most, want 6", seen.Peak())
		}
		return ""
	})
}

// Each rack holds four nodes: each of two groups gets one of its own.
func TestLWSRow6_1_05_ExclusivePlacement(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	set := groupsOf("exclusive", 2, 3)
	set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "jobset-apiserver.io/rack"}
	e.create(set)
	e.awaitAvailable("exclusive", 2, 6)
	racks := map[string]map[string]bool{}
	for name, pod := range e.podsOf("exclusive") {
		node, err := shared.Kube.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		group := strings.Split(name, "-")[1]
		if racks[group] == nil {
			racks[group] = map[string]bool{}
		}
		racks[group][node.Labels["jobset-apiserver.io/rack"]] = true
		if group == "0" && name != "exclusive-0" && pod.Spec.NodeSelector["jobset-apiserver.io/rack"] == "" {
			t.Errorf("worker %s has no node selector", name)
		}
	}
	first, second := slices.Collect(maps.Keys(racks["0"])), slices.Collect(maps.Keys(racks["1"]))
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("racks of the groups: %v and %v", first, second)
	}
}

func TestLWSRow6_1_06_VolumeClaimTemplates(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("claims", 1, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}))
	e.eventually(func() string {
		list, err := shared.Kube.CoreV1().PersistentVolumeClaims(e.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, claim := range list.Items {
			got = append(got, claim.Name)
		}
		slices.Sort(got)
		return cmp.Diff([]string{"data-claims-0", "data-claims-0-1"}, got)
	})
}

// The autoscaler moves the groups into its limits; without metrics it does no more.
func TestLWSRow6_1_07_HorizontalPodAutoscaler(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("simple-groups", 1, 2))
	e.awaitAvailable("simple-groups", 1, 2)
	e.applyFile("autoscaling")
	e.awaitAvailable("simple-groups", 3, 6)
	e.run("", "scale", "lws/simple-groups", "--replicas=7")
	e.awaitAvailable("simple-groups", 5, 10)
}

func TestLWSRow6_1_10_VLLM(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.applyFile("vllm")
	e.awaitAvailable("vllm", 2, 4)
	e.eventually(func() string { // the Service of the user selects the leaders
		slices, err := shared.Kube.DiscoveryV1().EndpointSlices(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=vllm-leader"})
		if err != nil {
			return err.Error()
		}
		endpoints := 0
		for _, slice := range slices.Items {
			endpoints += len(slice.Endpoints)
		}
		if endpoints != 2 {
			return fmt.Sprintf("%d endpoints, want 2", endpoints)
		}
		return ""
	})
}

func TestLWSRow6_1_12_SGLang(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.applyFile("sglang")
	e.awaitAvailable("sglang", 1, 2)
	if got := environment(e.podsOf("sglang")["sglang-0-1"])["LWS_WORKER_INDEX"]; got != "1" {
		t.Errorf("rank of the worker: got %q", got)
	}
}

func TestLWSRow6_1_13_TensorRTLLM(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.applyFile("tensorrt-llm")
	e.awaitAvailable("tensorrt-llm", 1, 2)
	leader := e.podsOf("tensorrt-llm")["tensorrt-llm-0"]
	list, err := shared.Kube.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: leaderworkersetv1.GroupKeyLabelKey + "=" + leader.Labels[leaderworkersetv1.GroupKeyLabelKey],
	})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the key of the group selects %d pods: %v", len(list.Items), err)
	}
	if first := leader.Spec.Containers[0].Env[0].Name; first != "LWS_LEADER_ADDRESS" {
		t.Errorf("the first variable is %s", first)
	}
}

func TestLWSRow6_1_14_LlamaCpp(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.applyFile("llama-cpp")
	e.awaitAvailable("llama-cpp", 1, 5)
	for name, pod := range e.podsOf("llama-cpp") {
		if pod.Spec.Hostname != name || pod.Spec.Subdomain != "llama-cpp" {
			t.Errorf("DNS name of %s: %s.%s", name, pod.Spec.Hostname, pod.Spec.Subdomain)
		}
	}
}

// Kueue finds StatefulSets and pods by the label of the set, and gates pods by the queue of their StatefulSet and its
// own labels in the templates.
func TestLWSRow6_1_15_Kueue(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	set := configure(groupsOf("queued", 1, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": "jobset-apiserver.io/rack"}
	})
	set.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
	e.create(set)
	e.awaitAvailable("queued", 1, 2)
	for name, child := range e.awaitStatefulSets("queued", "queued-0") {
		if child.Labels["kueue.x-k8s.io/queue-name"] != "team" || child.Labels[leaderworkersetv1.SetNameLabelKey] != "queued" {
			t.Errorf("labels of StatefulSet %s: %v", name, child.Labels)
		}
	}
	for name, pod := range e.podsOf("queued") {
		owner := metav1.GetControllerOf(pod)
		if pod.Annotations["kueue.x-k8s.io/podset-required-topology"] == "" || owner == nil || owner.Kind != "StatefulSet" {
			t.Errorf("pod %s: annotations %v, owner %v", name, pod.Annotations, owner)
		}
	}
}
