// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// newGroupsOf returns a set of replicas of two pods that are ready, on nodes in turn, and applies the changes to its pods.
func newGroupsOf(replicas int32, nodes int, change ...func(*leaderworkersetv1.LeaderWorkerSet, []corev1.Pod)) *snapshot.LeaderWorkerSet {
	set := builders.LeaderWorkerSet("vllm", replicas, 2)
	set.Status.ObservedGeneration, set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 1, replicas, replicas
	set.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "AllGroupsReady"}}
	leaders := builders.LeaderStatefulSet(set, "6859c84d69")
	sets, pods := []appsv1.StatefulSet{*leaders}, []corev1.Pod{}
	for i := range int(replicas) {
		on := func(pod *corev1.Pod) {
			pod.Spec.NodeName = fmt.Sprintf("node-%02d", i%nodes)
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("12"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("8")}
		}
		leader := builders.LeaderPod(set, leaders, i, on)
		workers := builders.WorkerStatefulSet(set, leader)
		sets = append(sets, *workers)
		pods = append(pods, *leader, *builders.WorkerPod(set, workers, 1, on))
	}
	for _, f := range change {
		f(set, pods)
	}
	for i := range replicas {
		if worker := &pods[2*i+1]; !snapshot.PodReady(worker) {
			sets[1+i].Status.AvailableReplicas = 0
		}
	}
	return snapshot.AssembleLeaderWorkerSet(set, sets, pods, now)
}

// updating is a set whose update has brought a pod that finds no node, and of whose replica 0 a worker is not ready.
func updating(set *leaderworkersetv1.LeaderWorkerSet, pods []corev1.Pod) {
	set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 1, 1
	set.Status.Conditions = []metav1.Condition{{Type: "UpdateInProgress", Status: metav1.ConditionTrue, Reason: "GroupsUpdating"}}
	set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 0, Restarts: 4}}
	set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](10)
	for i := range pods[:4] {
		pods[i].Labels[leaderworkersetv1.RevisionKey] = "5b8f7c9d44"
	}
	pods[1].Status.Conditions = nil
	pods[5].Status, pods[5].Spec.NodeName = corev1.PodStatus{Phase: corev1.PodPending}, ""
}

func lines(view View, width int, all bool) string {
	return strings.Join(view.Lines(cli.Terminal{Width: width}, all), "\n") + "\n"
}

// TestWidthsOfGroups shows the figures of an update on terminals of several widths.
func TestWidthsOfGroups(t *testing.T) {
	domains := map[string]string{"node-00": "zone-a", "node-01": "zone-b"}
	for _, width := range []int{0, 60, 80, 120, 200} {
		got := lines(newLeaderWorkerSet(newGroupsOf(3, 2, updating), "zone", domains), width, false)
		golden.Compare(t, fmt.Sprintf("leaderworkerset-%d.txt", width), got)
		for _, line := range strings.Split(got, "\n") {
			if width > 0 && cli.Columns(line) > width {
				t.Errorf("wider than %d columns: %q", width, line)
			}
		}
	}
}

func TestFiguresOfGroups(t *testing.T) {
	got := newLeaderWorkerSet(newGroupsOf(3, 2, updating), "zone", nil)
	if diff := cmp.Diff(Pods{Wanted: 6, Existing: 6, Ready: 4}, got.Pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if got.Restarts != 4 || len(got.Nodes) != 3 || got.Nodes[0].Ready != 2 && got.Nodes[0].Pods != 1 {
		t.Errorf("got %+v", got)
	}
	data, err := json.Marshal(newLeaderWorkerSet(newGroupsOf(1, 1), "zone", map[string]string{"node-00": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	const requests = `"requests":{"cpu":"24","memory":"128Gi","nvidia.com/gpu":"16"}`
	const pods = `"pods":{"wanted":2,"existing":2,"ready":2,"succeeded":0,"failed":0,"leaving":0}`
	want := `{"name":"vllm","namespace":"default","state":"Available","groupsReady":1,"groupsUpdated":1,"groupsWanted":1,"groupSize":2,"revision":"6859c84d69",` +
		pods + `,` + requests + `,"restarts":0,"groups":[{"index":0,"state":"Ready","revision":"6859c84d69","updated":true,` + pods + `,"restarts":0,` + requests + `}],` +
		`"domainLabel":"zone","domains":[{"name":"a","nodes":1,"pods":2,"ready":2,` + requests + `}],"nodes":[{"name":"node-00","domain":"a","pods":2,"ready":2,` + requests + `}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestManyGroupsAreSummarized(t *testing.T) {
	s := newGroupsOf(30, 3, func(_ *leaderworkersetv1.LeaderWorkerSet, pods []corev1.Pod) { pods[2*27].Status.Conditions = nil })
	got := lines(newLeaderWorkerSet(s, "zone", nil), 0, false)
	for _, want := range []string{"\n27     Starting  1/2 ", "\n0      Ready     2/2", "\nand 10 more groups with 20 pods, 0 of them not ready"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if got := lines(newLeaderWorkerSet(s, "zone", nil), 0, true); strings.Contains(got, "more groups") || !strings.Contains(got, "\n29 ") {
		t.Errorf("not all groups are shown:\n%s", got)
	}
}

func TestGroupsThatAreDeleted(t *testing.T) {
	s := newGroupsOf(2, 1, func(set *leaderworkersetv1.LeaderWorkerSet, pods []corev1.Pod) {
		set.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		for i := range pods[:2] {
			pods[i].DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}
	})
	got := newLeaderWorkerSet(s, "zone", nil)
	if diff := cmp.Diff(Pods{Wanted: 4, Existing: 2, Ready: 2, Leaving: 2, Removed: 2}, got.Pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if text := lines(got, 0, false); !strings.Contains(text, "2 of 4 ready, 2 removed, 2 terminating") {
		t.Errorf("got:\n%s", text)
	}
}
