// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func surge(unavailable, surge int32) *leaderworkersetv1.RollingUpdateConfiguration {
	return &leaderworkersetv1.RollingUpdateConfiguration{
		MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), MaxSurge: ptr.To(intstr.FromInt32(surge)),
	}
}

// rollsWithPeak updates a set of groups and waits for the highest number of groups on the way.
func (e *lwsEnv) rollsWithPeak(set *leaderWorkerSet, peak int32) {
	e.Helper()
	e.create(set)
	groups, pods := int(*set.Spec.Replicas), int(*set.Spec.Replicas**set.Spec.LeaderWorkerTemplate.GroupSize)
	e.awaitAvailable(set.Name, groups, pods)
	seen := e.record(set.Name)
	e.update(set.Name, newImage("example.com/main:2"))
	e.awaitAvailable(set.Name, groups, pods)
	e.eventually(func() string {
		if seen.Peak() != peak {
			return fmt.Sprintf("the leader StatefulSet had %d replicas at most, want %d", seen.Peak(), peak)
		}
		return ""
	})
	for name, pod := range e.podsOf(set.Name) {
		if pod.Spec.Containers[0].Image != "example.com/main:2" {
			e.Errorf("pod %s was not updated", name)
		}
	}
}

func TestLWSRow6_4_01_Deploy(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("deployed", 4, 5), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	}))
	e.awaitAvailable("deployed", 4, 20)
}

func TestLWSRow6_4_02_SizeOneWithSurge(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.rollsWithPeak(configure(groupsOf("single", 4, 1), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = surge(1, 1)
	}), 5)
}

func TestLWSRow6_4_03_DeleteInForeground(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("gone", 2, 2))
	e.awaitAvailable("gone", 2, 4)
	if r := e.run("", "delete", "lws/gone", "--cascade=foreground", "--timeout=180s"); r.err != nil {
		t.Fatal(r)
	}
	e.awaitStatefulSets()
	e.awaitServices()
	if r := e.run("", "get", "pods,controllerrevisions", "-l", leaderworkersetv1.SetNameLabelKey+"=gone", "-o", "name"); r.stdout != "" || r.err != nil {
		t.Errorf("left: %s", r)
	}
}

func TestLWSRow6_4_05_SurgeOfFour(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.rollsWithPeak(configure(groupsOf("surging", 4, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = surge(1, 4)
	}), 7)
}

func TestLWSRow6_4_06_SurgeWithoutUnavailability(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.rollsWithPeak(configure(groupsOf("careful", 4, 2), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = surge(0, 1)
	}), 5)
}

// No pod of the first revision ever becomes ready.
func TestLWSRow6_4_07_UpdateRepairsAnUnreadySet(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("broken", 2, 1), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.RolloutStrategy.RollingUpdateConfiguration = surge(0, 1)
		spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = map[string]string{"jobset-apiserver.io/kwok-start-after": "2100-01-01T00:00:00Z"}
	}))
	e.eventually(func() string {
		if n := len(e.podsOf("broken")); n != 2 {
			return fmt.Sprintf("%d pods, want 2", n)
		}
		return ""
	})
	e.update("broken", func(set *leaderWorkerSet) {
		newImage("example.com/main:2")(set)
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = nil
	})
	e.awaitAvailable("broken", 2, 2)
}

func TestLWSRow6_4_08_SubgroupsWithTPUs(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(configure(groupsOf("tpu", 2, 4), func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
		spec.LeaderWorkerTemplate.SubGroupPolicy = &leaderworkersetv1.SubGroupPolicy{SubGroupSize: ptr.To[int32](2)}
		spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"google.com/tpu": resource.MustParse("4")}
	}))
	e.eventually(func() string { // the nodes have no TPUs
		if n := len(e.podsOf("tpu")); n != 8 {
			return fmt.Sprintf("%d pods, want 8", n)
		}
		return ""
	})
	pods := e.podsOf("tpu")
	for name, want := range map[string][3]string{
		"tpu-0": {"0", "tpu-0.tpu,tpu-0-1.tpu", "0"}, "tpu-0-1": {"0", "tpu-0.tpu,tpu-0-1.tpu", "1"}, "tpu-1-3": {"1", "tpu-1-2.tpu,tpu-1-3.tpu", "1"},
	} {
		env := environment(pods[name])
		if got := [3]string{pods[name].Labels[leaderworkersetv1.SubGroupIndexLabelKey], env["TPU_WORKER_HOSTNAMES"], env["TPU_WORKER_ID"]}; got != want {
			t.Errorf("subgroup, hosts and ID of %s: got %v, want %v", name, got, want)
		}
		if env["TPU_NAME"] != name[:5] {
			t.Errorf("TPU_NAME of %s: got %s", name, env["TPU_NAME"])
		}
	}
}

func TestLWSRow6_4_10_NoTPUs(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("plain", 1, 2))
	e.awaitAvailable("plain", 1, 2)
	for name, pod := range e.podsOf("plain") {
		if got := len(pod.Spec.Containers[0].Env); got != 3 {
			t.Errorf("pod %s has %d variables, want 3", name, got)
		}
	}
}

func TestLWSRow6_4_12_SubdomainPolicyChanges(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("sub", 1, 2))
	e.awaitAvailable("sub", 1, 2)
	for _, policy := range []leaderworkersetv1.SubdomainPolicy{leaderworkersetv1.SubdomainUniquePerReplica, leaderworkersetv1.SubdomainShared} {
		want := map[leaderworkersetv1.SubdomainPolicy]string{leaderworkersetv1.SubdomainUniquePerReplica: "sub-0", leaderworkersetv1.SubdomainShared: "sub"}[policy]
		e.update("sub", func(set *leaderWorkerSet) { set.Spec.NetworkConfig.SubdomainPolicy = ptr.To(policy) })
		e.awaitAvailable("sub", 1, 2)
		for name, pod := range e.podsOf("sub") {
			if pod.Spec.Subdomain != want {
				t.Errorf("subdomain of %s with policy %s: got %s", name, policy, pod.Spec.Subdomain)
			}
		}
	}
}

func TestLWSRow6_4_14_DeletedWorkerRecreatesItsGroup(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newLWSEnv(t)
	e.create(groupsOf("deleted", 2, 3))
	e.awaitAvailable("deleted", 2, 6)
	before := e.uids("deleted", "deleted-0")
	if r := e.run("", "delete", "pod/deleted-0-2"); r.err != nil {
		t.Fatal(r)
	}
	e.awaitRecreated("deleted", "deleted-0", before)
	e.awaitAvailable("deleted", 2, 6)
}
