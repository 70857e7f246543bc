// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// heldGroups has Kueue hold the replicas with an index of at least from, in the queue research.
func heldGroups(from int, changes ...func(*Kueue)) func(*leaderWorkerSetCluster) {
	return func(c *leaderWorkerSetCluster) {
		c.Set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "research"}
		for _, pod := range c.pods[2*from:] {
			pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.Status = "", []corev1.PodSchedulingGate{{Name: kueueGate}}, corev1.PodStatus{Phase: corev1.PodPending}
		}
		c.Kueue = Kueue{
			Served: true, WorkloadRead: true, LocalQueueRead: true, ClusterQueueRead: true,
			LocalQueue:   kueueObject("LocalQueue", "research", map[string]any{"clusterQueue": "shared"}, kueueCondition("Active", "True", "")),
			ClusterQueue: kueueObject("ClusterQueue", "shared", map[string]any{}, kueueCondition("Active", "True", "")),
		}
		c.Kueue.Waiting = []unstructured.Unstructured{
			*waitingWorkload("leaderworkerset-vllm-1-a1b2c", "research", 0, 2, kueueCondition("QuotaReserved", "False", noGPUs)),
			*waitingWorkload("jobset-later-11111", "research", 0, 1),
			*waitingWorkload("jobset-urgent-22222", "research", 10, 1),
			*waitingWorkload("jobset-elsewhere-33333", "other", 10, 1),
			*waitingWorkload("jobset-admitted-44444", "research", 10, 1, kueueCondition("QuotaReserved", "True", "")),
		}
		c.Kueue.Workload = &c.Kueue.Waiting[0]
		ofGroup(c.Kueue.Workload, c, 1)
		for _, change := range changes {
			change(&c.Kueue)
		}
	}
}

const noGPUs = "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed"

// waitingWorkload is a Workload of so many minutes.
func waitingWorkload(name, queue string, priority int64, minutes time.Duration, conditions ...any) *unstructured.Unstructured {
	w := kueueObject("Workload", name, map[string]any{"active": true, "queueName": queue, "priority": priority}, conditions...)
	w.SetNamespace("team")
	w.SetCreationTimestamp(before(minutes * time.Minute))
	return w
}

// ofGroup has the set own the Workload of a replica, as Kueue makes it.
func ofGroup(w *unstructured.Unstructured, c *leaderWorkerSetCluster, index int) {
	w.SetAnnotations(map[string]string{groupIndexAnnotation: fmt.Sprint(index)})
	w.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Name: "vllm", UID: c.Set.UID}})
}

func TestGroupsHeldByKueue(t *testing.T) {
	for name, tc := range map[string]leaderWorkerSetCase{
		"a group without quota": {[]func(*leaderWorkerSetCluster){heldGroups(1)}, QuotaNotReserved,
			"group 1 is held by Kueue: the queue research has no quota for group 1: " + noGPUs + "; it has place 2 of 3 in the queue", "describe workload leaderworkerset-vllm-1-a1b2c"},
		"two groups without quota": {[]func(*leaderWorkerSetCluster){heldGroups(0)}, QuotaNotReserved, "groups 0, 1 are held by Kueue: the queue research has no quota for group 1: ", "describe clusterqueue shared"},
		"the queue of pods": {[]func(*leaderWorkerSetCluster){heldGroups(1), func(c *leaderWorkerSetCluster) {
			c.Set.Labels = nil
			c.pods[2].Labels[jobsetv1alpha2.QueueNameKey] = "research"
		}}, QuotaNotReserved, "no quota for group 1", ""},
		"no queue": {[]func(*leaderWorkerSetCluster){heldGroups(1, func(k *Kueue) { k.LocalQueue, k.ClusterQueue, k.ClusterQueueRead = nil, nil, false })}, QueueMissing,
			"group 1 is held by Kueue: there is no queue (LocalQueue) research in the namespace team", ""},
		"no Kueue": {[]func(*leaderWorkerSetCluster){heldGroups(1, func(k *Kueue) { *k = Kueue{} })}, QueueMissing,
			"group 1: group 1 waits for the queue research, but the cluster does not serve kueue.x-k8s.io", "label leaderworkerset vllm kueue.x-k8s.io/queue-name-"},
		"no Workload": {[]func(*leaderWorkerSetCluster){heldGroups(1, func(k *Kueue) { k.Workload = nil })}, WorkloadMissing, "which has made no Workload for group 1", ""},
		"a preemption": {[]func(*leaderWorkerSetCluster){heldGroups(1, preemptedFor(bigger("team"), noGPUs))}, WorkloadPreempted,
			"group 1: preempted 60m ago by the JobSet big (prioritization in the ClusterQueue); the queue research has no quota for group 1", ""},
		"a group in a worker cluster": {[]func(*leaderWorkerSetCluster){heldGroups(1, func(k *Kueue) {
			k.Workload.Object["status"] = map[string]any{"clusterName": "east", "conditions": []any{kueueCondition("QuotaReserved", "True", ""), kueueCondition("Admitted", "True", "")}}
		})}, ManagedByOther, "Kueue runs group 1 in the cluster east", "why lws/vllm  # in the cluster east"},
		"a stopped queue": {[]func(*leaderWorkerSetCluster){heldGroups(1, func(k *Kueue) {
			k.ClusterQueue = kueueObject("ClusterQueue", "shared", map[string]any{"stopPolicy": "Hold"})
		})}, QueueStopped, "group 1 is held by Kueue: ClusterQueue shared is stopped", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := runningLeaderWorkerSet()
			for _, change := range tc.change {
				change(c)
			}
			findings := diagnoseLeaderWorkerSet(c.evidence()).Findings
			first := findings[0]
			if first.Cause != tc.want || !strings.Contains(first.Summary, tc.wantSummary) || !strings.Contains(strings.Join(first.Commands, "\n"), tc.wantCommand) {
				t.Errorf("got %s: %s\n%v\nwant %s: %s", first.Cause, first.Summary, first.Commands, tc.want, tc.wantSummary)
			}
			for _, f := range findings {
				if f.Cause == SchedulingGate || strings.Contains(f.Summary, "suspended") {
					t.Errorf("also %s: %s", f.Cause, f.Summary)
				}
			}
		})
	}
}

func TestReportOfGroupsHeldByKueue(t *testing.T) {
	for _, width := range []int{60, 100} {
		c := runningLeaderWorkerSet()
		heldGroups(1)(c)
		var out bytes.Buffer
		if err := render(&out, cli.LeaderWorkerSet, diagnoseLeaderWorkerSet(c.evidence()), cli.Terminal{Width: width}, c.Now); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, fmt.Sprintf("leaderworkerset-kueue-%d.txt", width), out.String())
	}
}

// TestLoadOfGroupsHeldByKueue reads the Workload of the replica, among those of others, and the queues.
func TestLoadOfGroupsHeldByKueue(t *testing.T) {
	c := runningLeaderWorkerSet()
	heldGroups(1)(c)
	stored := c.Kueue
	c.Kueue = Kueue{}
	w := newEnv(t, &Evidence{})
	w.dynamic.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetResource().Version == "v1beta2", nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	})
	for i := range stored.Waiting {
		object := stored.Waiting[i].DeepCopy()
		object.SetAPIVersion("kueue.x-k8s.io/v1beta1")
		if err := w.dynamic.Tracker().Create(kueue("v1beta1", "workloads"), object, "team"); err != nil {
			t.Fatal(err)
		}
	}
	for resource, object := range map[string]*unstructured.Unstructured{"localqueues": stored.LocalQueue, "clusterqueues": stored.ClusterQueue} {
		namespace := map[bool]string{true: "team"}[resource == "localqueues"]
		object.SetAPIVersion("kueue.x-k8s.io/v1beta1")
		object.SetNamespace(namespace)
		if err := w.dynamic.Tracker().Create(kueue("v1beta1", resource), object, namespace); err != nil {
			t.Fatal(err)
		}
	}
	e := c.loadInto(t, w)
	k := e.Kueue
	if k.Workload.GetName() != "leaderworkerset-vllm-1-a1b2c" || k.LocalQueue == nil || k.ClusterQueue == nil || len(k.Waiting) != 5 {
		t.Fatalf("got %+v", k)
	}
	if before, all := k.ahead(); len(before) != 1 || all != 3 {
		t.Errorf("%d of %d Workloads are ahead", len(before), all)
	}
	if first := diagnoseLeaderWorkerSet(e).Findings[0]; first.Cause != QuotaNotReserved || !strings.Contains(first.Summary, noGPUs) {
		t.Errorf("got %s: %s", first.Cause, first.Summary)
	}
	if e, err := load(context.Background(), w.Clients, leaderWorkerSetKind(), "vllm"); err != nil || len(e.NotLookedAt) > 0 {
		t.Errorf("not looked at: %v, %v", e.NotLookedAt, err)
	}
}
