// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// replicasOf collects the objects of a set as they are read.
type replicasOf struct {
	set     *leaderworkersetv1.LeaderWorkerSet
	leaders *appsv1.StatefulSet
	sets    []appsv1.StatefulSet
	pods    []corev1.Pod
}

func newReplicasOf(replicas, size int32, change ...func(*leaderworkersetv1.LeaderWorkerSet)) *replicasOf {
	set := builders.LeaderWorkerSet("vllm", replicas, size, change...)
	set.CreationTimestamp = ago(3 * time.Hour)
	set.Status.ObservedGeneration = 1
	g := &replicasOf{set: set, leaders: builders.LeaderStatefulSet(set, "new")}
	g.sets = append(g.sets, *g.leaders)
	return g
}

// add adds a replica of the revision whose pods are all ready, and applies the changes to the pods.
func (g *replicasOf) add(index int, revision string, change ...func(*corev1.Pod)) {
	old := func(pod *corev1.Pod) {
		pod.Labels[leaderworkersetv1.RevisionKey] = revision
		pod.CreationTimestamp = ago(time.Hour)
		pod.Spec.NodeName = fmt.Sprintf("node-%d", index)
	}
	leader := builders.LeaderPod(g.set, g.leaders, index, append([]func(*corev1.Pod){old}, change...)...)
	workers := builders.WorkerStatefulSet(g.set, leader)
	g.sets, g.pods = append(g.sets, *workers), append(g.pods, *leader)
	for i := 1; i < int(*g.set.Spec.LeaderWorkerTemplate.GroupSize); i++ {
		pod := builders.WorkerPod(g.set, workers, i, append([]func(*corev1.Pod){old}, change...)...)
		g.pods = append(g.pods, *pod)
	}
}

// pod returns a pod by name, to be changed.
func (g *replicasOf) pod(name string) *corev1.Pod {
	for i := range g.pods {
		if g.pods[i].Name == name {
			return &g.pods[i]
		}
	}
	return nil
}

// workers returns the StatefulSet of a replica, to be changed.
func (g *replicasOf) workers(index int) *appsv1.StatefulSet {
	for i := range g.sets {
		if g.sets[i].Name == fmt.Sprintf("vllm-%d", index) {
			return &g.sets[i]
		}
	}
	return nil
}

func (g *replicasOf) tree() *LeaderWorkerSetTree {
	return newLeaderWorkerSet(snapshot.AssembleLeaderWorkerSet(g.set, g.sets, g.pods, now))
}

func (g *replicasOf) lines(all bool) []string { return g.tree().Lines(cli.Terminal{}, now, all) }

// updating returns a set of which one of three replicas is updated and starts, one is old and in a crash loop, and one is a surge.
func updating() *replicasOf {
	g := newReplicasOf(3, 2, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 1, 2
		set.Status.Conditions = []metav1.Condition{{Type: "UpdateInProgress", Status: metav1.ConditionTrue, Reason: "GroupsUpdating", Message: "Rolling Upgrade is in progress"}}
		set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 1, Restarts: 4}}
	})
	g.sets[0].Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
	g.add(0, "old")
	g.add(1, "old")
	g.add(2, "new")
	g.add(3, "new")
	crashLoop(g.pod("vllm-1"))
	unschedulable(g.pod("vllm-2-1"))
	g.workers(2).Status.AvailableReplicas = 0
	return g
}

func TestGroupsOfAnUpdate(t *testing.T) {
	same(t, `NAME STATE READY RESTARTS REVISION AGE NODE MESSAGE
leaderworkerset/vllm Updating 1/3 4 new 3h 2 of 3 groups updated, partition 2
├─ group/0 Ready 2/2 0 old 60m of an earlier revision
│ ├─ pod/vllm-0 Running 1/1 0 old 60m node-0
│ └─ pod/vllm-0-1 Running 1/1 0 old 60m node-0
├─ group/1 Starting 1/2 4 old 60m of an earlier revision
│ ├─ pod/vllm-1 CrashLoopBackOff 0/1 7 old 60m node-1 main ended with exit code 137
│ └─ pod/vllm-1-1 Running 1/1 0 old 60m node-1
├─ group/2 Starting 1/2 0 new 60m
│ ├─ pod/vllm-2 Running 1/1 0 new 60m node-2
│ └─ pod/vllm-2-1 Pending 0/1 0 new 60m 0/7 nodes are available: 7 Insufficient cpu.
└─ group/3 Ready 2/2 0 new 60m surge
├─ pod/vllm-3 Running 1/1 0 new 60m node-3
└─ pod/vllm-3-1 Running 1/1 0 new 60m node-3`, updating().lines(false))
}

func TestManyEqualGroupsAreOneLine(t *testing.T) {
	g := newReplicasOf(100, 8, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 87, 30
		set.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
	})
	for i := range 90 {
		revision := "old"
		if i >= 60 {
			revision = "new"
		}
		g.add(i, revision)
	}
	for i := range 5 {
		crashLoop(g.pod(fmt.Sprintf("vllm-7-%d", i+1)))
	}
	got := g.lines(false)
	same(t, `NAME STATE READY RESTARTS REVISION AGE NODE MESSAGE
leaderworkerset/vllm Available 87/100 0 new 3h
├─ group/7 Ready 3/8 0 old 60m of an earlier revision
│ ├─ pod/vllm-7-1 CrashLoopBackOff 0/1 7 old 60m node-7 main ended with exit code 137
│ ├─ pod/vllm-7-2 CrashLoopBackOff 0/1 7 old 60m node-7 main ended with exit code 137
│ ├─ pod/vllm-7-3 CrashLoopBackOff 0/1 7 old 60m node-7 main ended with exit code 137
│ ├─ 2 more pods CrashLoopBackOff node-7
│ └─ 3 more pods Running node-7
├─ group/[90-99] Missing not created yet; ask `+"`kubectl jobset why lws/vllm`"+` if this stays
├─ 30 more groups Ready 240/240 0 new 30 nodes
└─ 59 more groups Ready 472/472 0 old 59 nodes`, got)
	if got, want := len(g.lines(true)), 2+100+90*8; got != want {
		t.Errorf("all: got %d lines, want %d", got, want)
	}
}

func TestStatesOfGroups(t *testing.T) {
	cause := &jobsetv1alpha2.FailureCause{Job: "vllm-0", Pod: "vllm-0-1", ExitCode: ptr.To[int32](137)}
	status := func(s leaderworkersetv1.GroupStatus) func(*replicasOf) {
		return func(g *replicasOf) { g.set.Status.Groups = []leaderworkersetv1.GroupStatus{s} }
	}
	notReady := func(g *replicasOf) { g.workers(0).Status.AvailableReplicas = 0 }
	noWorkers := func(g *replicasOf) {
		g.sets = g.sets[:1]
		g.pods = g.pods[:1]
	}
	for name, tc := range map[string]struct {
		change      []func(*replicasOf)
		wantState   string
		wantMessage string
	}{
		"ready": {wantState: "Ready"},
		"leader is deleted to recreate the group": {[]func(*replicasOf){
			status(leaderworkersetv1.GroupStatus{Restarts: 1, RestartedLeader: "vllm-0-pod", FirstCause: cause}), func(g *replicasOf) { g.pod("vllm-0").DeletionTimestamp = &metav1.Time{Time: now} },
		}, "Terminating", "is being recreated: pod vllm-0-1 ended with exit code 137"},
		"worker was deleted": {[]func(*replicasOf){
			status(leaderworkersetv1.GroupStatus{Restarts: 1, RestartedLeader: "vllm-0-pod", FirstCause: &jobsetv1alpha2.FailureCause{Job: "vllm-0", Pod: "vllm-0-1", Message: "the pod was deleted"}}),
			func(g *replicasOf) { g.pod("vllm-0").DeletionTimestamp = &metav1.Time{Time: now} },
		}, "Terminating", "is being recreated: pod vllm-0-1: the pod was deleted"},
		"leader is deleted by somebody": {[]func(*replicasOf){func(g *replicasOf) { g.pod("vllm-0").DeletionTimestamp = &metav1.Time{Time: now} }}, "Terminating", ""},
		"backoff": {[]func(*replicasOf){
			notReady, status(leaderworkersetv1.GroupStatus{Restarts: 3, RestartsInRow: 3, RestartAt: ptr.To(metav1.NewTime(now.Add(40 * time.Second))), FirstCause: cause}),
		}, "Failed", "is recreated at 2026-01-02T12:00:40Z, after 3 failures in a row: pod vllm-0-1 ended with exit code 137"},
		"limit": {[]func(*replicasOf){
			notReady, status(leaderworkersetv1.GroupStatus{Restarts: 3, Failed: true, RestartedLeader: "vllm-0-pod", FirstCause: cause}),
		}, "Failed", "has used up its 3 restarts: pod vllm-0-1 ended with exit code 137"},
		"leader is not ready": {[]func(*replicasOf){noWorkers, func(g *replicasOf) {
			g.set.Spec.StartupPolicy, g.pods[0].Status.Conditions = leaderworkersetv1.StartupPolicyLeaderReady, nil
		}}, "Starting", "the workers are created once the leader is ready (startupPolicy)"},
		"leader has no node": {[]func(*replicasOf){noWorkers, func(g *replicasOf) {
			g.set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
			g.pods[0].Spec.NodeName = ""
		}}, "Starting", "the workers are created once the leader has a node (exclusive placement)"},
		"workers are missing": {[]func(*replicasOf){noWorkers}, "Starting", "the workers are not created yet"},
		"leader is gone":      {[]func(*replicasOf){func(g *replicasOf) { g.pods = g.pods[1:] }}, "Terminating", "the pods of the former group are being deleted"},
		"nothing exists":      {[]func(*replicasOf){func(g *replicasOf) { g.sets, g.pods = nil, nil }}, "Missing", "the StatefulSet vllm does not exist"},
		"controller is away": {[]func(*replicasOf){func(g *replicasOf) {
			g.sets, g.pods, g.set.Status.ObservedGeneration = nil, nil, 0
		}}, "Missing", "the controller has not acted on the set yet"},
		"set is deleted": {[]func(*replicasOf){func(g *replicasOf) {
			g.sets, g.pods, g.set.DeletionTimestamp = nil, nil, &metav1.Time{Time: now}
		}}, "Removed", "the set is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newReplicasOf(1, 2)
			g.add(0, "new")
			for _, f := range tc.change {
				f(g)
			}
			replicas := g.tree().Replicas
			if len(replicas) != 1 || replicas[0].State != tc.wantState || replicas[0].Message != tc.wantMessage {
				t.Errorf("got %+v, want %s: %s", replicas, tc.wantState, tc.wantMessage)
			}
		})
	}
}

func TestPodsOfAnotherSetAreNotShown(t *testing.T) {
	g := newReplicasOf(1, 2)
	g.add(0, "new")
	g.pod("vllm-0").OwnerReferences[0].UID = "another"
	g.pod("vllm-0-1").OwnerReferences[0].UID = "another"
	got := g.tree().Replicas
	if len(got) != 1 || len(got[0].Pods) != 0 {
		t.Errorf("pods of another set are shown: %+v", got)
	}
}

func TestGroupsAsData(t *testing.T) {
	data, err := json.Marshal(updating().tree())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"groupsReady":1`, `"groupsWanted":3`, `"revision":"new","partition":2`, `"name":"vllm-2-1","index":1`, `"surge":true`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is missing in %s", want, data)
		}
	}
}

// TestWidthsOfGroups shows the tree of an update on terminals of several widths.
func TestWidthsOfGroups(t *testing.T) {
	for _, width := range []int{60, 100, 200} {
		got := updating().tree().Lines(cli.Terminal{Width: width}, now, false)
		golden.Compare(t, fmt.Sprintf("leaderworkerset-%d.txt", width), strings.Join(got, "\n")+"\n")
		for _, line := range got {
			if cli.Columns(line) > width {
				t.Errorf("%d columns: got %d in %q", width, cli.Columns(line), line)
			}
		}
	}
}
