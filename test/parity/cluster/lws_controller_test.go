// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func (e *lwsEnv) scaleTo(name string, replicas int32) {
	e.Helper()
	if r := e.run("", "scale", "lws/"+name, fmt.Sprintf("--replicas=%d", replicas)); r.err != nil {
		e.Fatal(r)
	}
}

func TestLWSRow6_2_01_ScaleUpAndDown(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("scaled", 2, 2))
	e.awaitAvailable("scaled", 2, 4)
	e.scaleTo("scaled", 4)
	e.awaitAvailable("scaled", 4, 8)
	e.scaleTo("scaled", 1)
	e.awaitAvailable("scaled", 1, 2)
	e.awaitStatefulSets("scaled", "scaled-0")
}

func TestLWSRow6_2_02_ScaleToZeroAndBack(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("zero", 0, 2))
	e.awaitAvailable("zero", 0, 0)
	e.scaleTo("zero", 1)
	e.awaitAvailable("zero", 1, 2)
	e.scaleTo("zero", 0)
	e.awaitAvailable("zero", 0, 0)
}

func TestLWSRow6_2_03_SizeOne(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("one", 2, 1))
	e.awaitAvailable("one", 2, 2)
	e.awaitStatefulSets("one")
	e.update("one", newImage("example.com/main:2"))
	e.awaitAvailable("one", 2, 2)
}

func TestLWSRow6_2_06_DeletedChildrenComeBack(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("healed", 1, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	}))
	e.awaitAvailable("healed", 1, 2)
	workers, leader := e.statefulSet("healed-0"), e.statefulSet("healed")
	for _, child := range []string{"statefulset/healed-0", "service/healed"} {
		if r := e.run("", "delete", child); r.err != nil {
			t.Fatal(r)
		}
	}
	e.awaitServices("healed")
	e.eventually(func() string {
		if now := e.statefulSet("healed-0"); now == nil || now.UID == workers.UID {
			return "the StatefulSet of the workers was not created again"
		}
		return ""
	})
	e.awaitAvailable("healed", 1, 2)
	if r := e.run("", "delete", "statefulset/healed"); r.err != nil {
		t.Fatal(r)
	}
	e.eventually(func() string {
		if now := e.statefulSet("healed"); now == nil || now.UID == leader.UID {
			return "the leader StatefulSet was not created again"
		}
		return ""
	})
	e.awaitAvailable("healed", 1, 2)
}

func TestLWSRow6_2_09_ServicePerGroup(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("unique", 2, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	}))
	e.awaitAvailable("unique", 2, 4)
	e.awaitServices("unique-0", "unique-1")
	pods := e.podsOf("unique")
	for _, name := range []string{"unique-1", "unique-1-1"} {
		if got, want := environment(pods[name])["LWS_LEADER_ADDRESS"], "unique-1.unique-1."+e.namespace; pods[name].Spec.Subdomain != "unique-1" || got != want {
			t.Errorf("pod %s: subdomain %s, address of the leader %s, want %s", name, pods[name].Spec.Subdomain, got, want)
		}
	}
}

func TestLWSRow6_2_10_ScaleSubresource(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("scale", 2, 2))
	e.awaitAvailable("scale", 2, 4)
	scale, err := e.groups.GetScale(t.Context(), "scale", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%d %d %s", scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector),
		"2 2 leaderworkerset.sigs.k8s.io/name=scale,leaderworkerset.sigs.k8s.io/worker-index=0"; got != want {
		t.Errorf("scale: got %s, want %s", got, want)
	}
}

func TestLWSRow6_2_13_ReadinessComesAndGoes(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("flips", 2, 2))
	e.awaitAvailable("flips", 2, 4)
	e.awaitEvent(leaderworkersetv1.ReasonAllGroupsReady, "All replicas are ready, with 2 groups ready of total 2 groups")
	e.setReady("flips-1-1", corev1.ConditionFalse)
	set := e.awaitLWS("flips", leaderworkersetv1.ConditionProgressing)
	if c := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionAvailable); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("condition Available: %+v", c)
	}
	if meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionUpdateInProgress) != nil {
		t.Error("the set reports an update that never was")
	}
	e.setReady("flips-1-1", corev1.ConditionTrue)
	e.awaitAvailable("flips", 2, 4)
}

func TestLWSRow6_2_16_RestartPolicyNone(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("none", 1, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	}))
	e.awaitAvailable("none", 1, 2)
	before := e.uids("none", "none-0")
	e.restartContainer("none-0-1")
	e.scaleTo("none", 2) // what the controller does after it has seen the restart
	e.awaitAvailable("none", 2, 4)
	for pod, uid := range before {
		if got := e.uids("none", "none-0")[pod]; got != uid {
			t.Errorf("pod %s was recreated", pod)
		}
	}
}

func TestLWSRow6_2_17_RecreateGroupOnPodRestart(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("recreated", 2, 3))
	e.awaitAvailable("recreated", 2, 6)
	before, others := e.uids("recreated", "recreated-1"), e.uids("recreated", "recreated-0")
	e.restartContainer("recreated-1-2")
	e.awaitRecreated("recreated", "recreated-1", before)
	e.awaitEvent("RecreateGroup", "Worker pod recreated-1-2 failed, deleted leader pod recreated-1 to recreate group 1")
	set := e.awaitAvailable("recreated", 2, 6)
	if len(set.Status.Groups) != 1 || set.Status.Groups[0].Index != 1 || set.Status.Groups[0].Restarts != 1 {
		t.Fatalf("restarts in the status: %+v", set.Status.Groups)
	}
	if cause := set.Status.Groups[0].FirstCause; cause == nil || cause.Pod != "recreated-1-2" || cause.Reason != "OOMKilled" || *cause.ExitCode != 137 {
		t.Errorf("first cause: %+v", cause)
	}
	for pod, uid := range others {
		if got := e.uids("recreated", "recreated-0")[pod]; got != uid {
			t.Errorf("pod %s of the other group was recreated", pod)
		}
	}
}

// The pods of the second group stay pending, so that it has not started.
func TestLWSRow6_2_19_RecreateGroupAfterStart(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("started", 1, 3), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyRecreateGroupAfterStart
		leader := spec.LeaderWorkerTemplate.WorkerTemplate.DeepCopy()
		leader.Annotations = map[string]string{"jobset-apiserver.io/kwok-start-after": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
		spec.LeaderWorkerTemplate.LeaderTemplate = leader
	}))
	e.eventually(func() string {
		pods := e.podsOf("started")
		for _, name := range []string{"started-0-1", "started-0-2"} {
			if pods[name] == nil || pods[name].Status.Phase != corev1.PodRunning {
				return name + " does not run"
			}
		}
		return ""
	})
	before := e.uids("started", "started-0")
	e.restartContainer("started-0-1")
	set := e.getSet("started")
	e.scaleTo("started", 2)
	e.eventually(func() string {
		if now := e.getSet("started"); now.Status.Replicas != 2 || now.Status.ObservedGeneration <= set.Generation {
			return fmt.Sprintf("status %+v", now.Status)
		}
		return ""
	})
	for pod, uid := range before {
		if got := e.uids("started", "started-0")[pod]; got != uid {
			t.Errorf("pod %s was recreated although the group had not started", pod)
		}
	}
	for _, leader := range []string{"started-0", "started-1"} {
		e.run("", "annotate", "pod/"+leader, "--overwrite", "jobset-apiserver.io/kwok-start-after="+time.Now().UTC().Format(time.RFC3339))
	}
	e.awaitRecreated("started", "started-0", before)
}

func TestLWSRow6_2_26_OldGroupKeepsItsRevision(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("parted", 2, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{Partition: ptr.To[int32](1)}
	}))
	e.awaitAvailable("parted", 2, 4)
	e.update("parted", func(set *leaderWorkerSet) {
		newImage("example.com/main:2")(set)
		set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](3)
	})
	e.awaitLWS("parted", leaderworkersetv1.ConditionAvailable)
	e.eventually(func() string {
		if n := len(e.podsOf("parted")); n != 5 {
			return fmt.Sprintf("%d pods, want 5", n)
		}
		return ""
	})
	before := e.uids("parted", "parted-0")
	if r := e.run("", "delete", "pod/parted-0"); r.err != nil {
		t.Fatal(r)
	}
	e.awaitRecreated("parted", "parted-0", before)
	pods := e.podsOf("parted")
	if old, updated := pods["parted-0-1"], pods["parted-1-1"]; old.Spec.Containers[0].Image != "example.com/main:1" || updated.Spec.Containers[0].Image != "example.com/main:2" ||
		environment(old)["LWS_GROUP_SIZE"] != "2" || environment(updated)["LWS_GROUP_SIZE"] != "3" || pods["parted-0-2"] != nil {
		t.Errorf("workers: %s of size %s, %s of size %s", old.Spec.Containers[0].Image, environment(old)["LWS_GROUP_SIZE"],
			updated.Spec.Containers[0].Image, environment(updated)["LWS_GROUP_SIZE"])
	}
}

func TestLWSRow6_2_30_LeaderReady(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("ready", 1, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
		leader := spec.LeaderWorkerTemplate.WorkerTemplate.DeepCopy()
		leader.Annotations = map[string]string{"jobset-apiserver.io/kwok-start-after": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
		spec.LeaderWorkerTemplate.LeaderTemplate = leader
	}))
	e.awaitLWS("ready", leaderworkersetv1.ConditionProgressing)
	e.eventually(func() string {
		if e.podsOf("ready")["ready-0"] == nil {
			return "no leader"
		}
		return ""
	})
	e.awaitStatefulSets("ready")
	e.run("", "annotate", "pod/ready-0", "--overwrite", "jobset-apiserver.io/kwok-start-after="+time.Now().UTC().Format(time.RFC3339))
	e.awaitAvailable("ready", 1, 2)
}

func TestLWSRow6_2_31_Resize(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("resized", 2, 2))
	e.awaitAvailable("resized", 2, 4)
	e.update("resized", func(set *leaderWorkerSet) { set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](4) })
	e.awaitAvailable("resized", 2, 8)
	for name, pod := range e.podsOf("resized") {
		if pod.Annotations[leaderworkersetv1.SizeAnnotationKey] != "4" {
			t.Errorf("size of pod %s: %s", name, pod.Annotations[leaderworkersetv1.SizeAnnotationKey])
		}
	}
}
