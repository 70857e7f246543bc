// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	// poolNodes is how many nodes a pool may have, and poolsAtMost how many pools there may be.
	poolNodes   = 2
	poolsAtMost = 6
	// bootTime is how long a node takes from the decision to add it until it is there.
	bootTime = 500 * time.Millisecond
)

// autoscaler adds nodes for pods for which the scheduler finds none: to the pool in which other pods of the same Job
// are, or to one without pods, or to a new one. It takes idle nodes away while shrinks is set.
type autoscaler struct {
	*ownNodes
	shrinks atomic.Bool
	// booting are the pools of nodes that are to come, and when.
	booting []boot
	// pools and added are how many there have been.
	pools, added int
}

type boot struct {
	pool string
	due  time.Time
}

// autoscale runs an autoscaler until the test ends.
func (n *ownNodes) autoscale(t *testing.T) *autoscaler {
	a := &autoscaler{ownNodes: n}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			// What fails is tried again at the next step.
			if err := a.step(ctx); err != nil && ctx.Err() == nil {
				t.Logf("autoscaler: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		t.Logf("the autoscaler made %d pools, and %d nodes", a.pools, a.added)
	})
	return a
}

// step looks at pods and nodes once.
func (a *autoscaler) step(ctx context.Context) error {
	if err := a.boot(ctx); err != nil {
		return err
	}
	pods, err := a.kube.CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := a.nodes(ctx)
	if err != nil {
		return err
	}
	a.grow(pods.Items, nodes)
	if a.shrinks.Load() {
		return a.shrink(ctx, pods.Items, nodes)
	}
	return nil
}

// boot adds the nodes that are due.
func (a *autoscaler) boot(ctx context.Context) (err error) {
	a.booting = slices.DeleteFunc(a.booting, func(b boot) bool {
		if time.Now().Before(b.due) {
			return false
		}
		a.added++
		err = cmp.Or(err, a.add(ctx, fmt.Sprintf("%s-%d", b.pool, a.added), b.pool))
		return true
	})
	return err
}

// grow decides which nodes are to come.
func (a *autoscaler) grow(pods []corev1.Pod, nodes []corev1.Node) {
	size, boots, poolOf := map[string]int{}, map[string]bool{}, map[string]string{}
	for i := range nodes {
		poolOf[nodes[i].Name] = a.domainOf(&nodes[i])
		size[a.domainOf(&nodes[i])]++
	}
	for _, b := range a.booting {
		size[b.pool]++
		boots[b.pool] = true
	}
	home, used, waits := a.count(pods, poolOf)
	for _, job := range slices.Sorted(maps.Keys(waits)) {
		pool := home[job]
		if pool == "" {
			pool = firstEmpty(size, used)
		}
		if pool == "" && a.pools < poolsAtMost {
			a.pools++
			pool = fmt.Sprintf("%s-pool-%d", a.namespace, a.pools)
		}
		// One node after the other, so that some pods of a Job run while others wait.
		if pool != "" && !boots[pool] && size[pool] < min(poolNodes, used[pool]+waits[job]) {
			a.booting = append(a.booting, boot{pool, time.Now().Add(bootTime)})
		}
		used[pool] += waits[job]
	}
}

// count returns the pools of Jobs, as far as their pods say them, how many pods are in pools, and how many pods of Jobs find no node.
func (a *autoscaler) count(pods []corev1.Pod, poolOf map[string]string) (home map[string]string, used, waits map[string]int) {
	home, used, waits = map[string]string{}, map[string]int{}, map[string]int{}
	for i := range pods {
		job := pods[i].Labels[jobsetv1alpha2.JobKey]
		switch pool := poolOf[pods[i].Spec.NodeName]; {
		case pool != "":
			home[job] = pool
			used[pool]++
		case unschedulable(&pods[i]):
			waits[job]++
			home[job] = cmp.Or(home[job], pods[i].Spec.NodeSelector[a.key()])
		}
	}
	return home, used, waits
}

// firstEmpty returns a pool without pods; empty if there is none.
func firstEmpty(size, used map[string]int) string {
	for _, pool := range slices.Sorted(maps.Keys(size)) {
		if used[pool] == 0 {
			return pool
		}
	}
	return ""
}

// shrink removes nodes without pods. It closes each first, and looks once more.
func (a *autoscaler) shrink(ctx context.Context, pods []corev1.Pod, nodes []corev1.Node) error {
	for i := range nodes {
		node := &nodes[i]
		idle := !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node.Name })
		closed := node.Spec.Unschedulable
		var err error
		switch {
		case idle && closed:
			err = a.kube.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
		case idle != closed:
			node.Spec.Unschedulable = idle
			_, err = a.kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// unschedulable returns whether the scheduler finds no node for a pod.
func unschedulable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// testAutoscaler starts a set for which there is no node at all: nodes come for its pods, each Job has a pool to
// itself, and keeps it in a restart. The pools go with a suspension, and others come.
func testAutoscaler(t *testing.T, c *cluster) {
	k, nodes := newOwnNodes(t, c)
	scaler := nodes.autoscale(t)
	start := time.Now()
	k.okIn(nodes.set("train", 3, ""), "create", "-f", "-")
	k.eventually(func() string { return nodes.alone("train", 3) })
	k.Logf("all run after %s", time.Since(start).Round(time.Second))
	k.eventually(func() string {
		if events := k.ok("get", "events", "--field-selector=reason=NoDomain", "-o", "jsonpath={.items[*].message}"); events == "" {
			return "no event NoDomain"
		}
		return ""
	})
	before := k.domains("train")

	k.ok("annotate", "pod", "-l", "jobset.sigs.k8s.io/job-index=1", "jobset-apiserver.io/kwok-outcome=failed", "--overwrite")
	k.eventually(func() string {
		return k.hasNot("jobset/train", "{.status.restarts} {.status.placement.restarts}", "1 1")
	})
	k.eventually(func() string { return nodes.alone("train", 3) })
	if after := k.domains("train"); !slices.Equal(before, after) {
		k.Errorf("domains before and after a restart: %v, %v", before, after)
	}

	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	scaler.shrinks.Store(true)
	k.eventually(func() string {
		if left, err := nodes.nodes(t.Context()); err != nil || len(left) > 0 {
			return fmt.Sprintf("%d nodes are left of a set that is suspended, error %v", len(left), err)
		}
		return ""
	})
	scaler.shrinks.Store(false)
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	k.eventually(func() string { return nodes.alone("train", 3) })
	if now := k.domains("train"); slices.ContainsFunc(now, func(domain string) bool { return slices.Contains(before, domain) }) {
		k.Errorf("domains %v are gone, but those after the suspension are %v", before, now)
	}
}
