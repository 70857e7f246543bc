// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	serverPods = "app.kubernetes.io/name=jobset-apiserver"
	etcdPods   = "app.kubernetes.io/name=jobset-etcd"

	controllerPods = "app.kubernetes.io/name=jobset-controller"
)

// restart does a rolling restart, and waits until the last of the former pods is gone: requests fail when a server
// ends, not when its successor is ready.
func (s *steps) restart(workload, selector string) {
	s.Helper()
	before := s.pods(selector)
	must(s.T, "--namespace="+namespace, "rollout", "restart", workload)
	must(s.T, "--namespace="+namespace, "rollout", "status", "--timeout=10m", workload)
	s.reached("all new pods of " + workload + " are ready")
	framework.Eventually(s, "all former pods of "+workload+" are gone", func(context.Context) error {
		for uid := range s.pods(selector) {
			if node, old := before[uid]; old {
				return fmt.Errorf("one is left on %s", node)
			}
		}
		return nil
	})
	s.reached("all former pods are gone")
}

// pods returns the nodes of the pods that a selector selects, by their UIDs.
func (s *steps) pods(selector string) map[string]string {
	s.Helper()
	list, err := core.CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.Fatal(err)
	}
	nodes := map[string]string{}
	for i := range list.Items {
		nodes[string(list.Items[i].UID)] = list.Items[i].Spec.NodeName
	}
	return nodes
}

// TestServersRestart does a rolling restart of the servers. No request fails that reached one in time.
func TestServersRestart(t *testing.T) {
	rounds := 1
	if everything() {
		rounds = 5
	}
	for range rounds {
		observe(t, "rolling restart of the servers", true, func(s *steps) { s.restart("deployment/jobset-apiserver", serverPods) })
	}
}

// TestMembersRestart does a rolling restart of etcd. A request that waits for a member that ends may fail.
func TestMembersRestart(t *testing.T) {
	if !everything() {
		return
	}
	for range 3 {
		observe(t, "rolling restart of etcd", false, func(s *steps) { s.restart("statefulset/jobset-etcd", etcdPods) })
	}
}

// TestControllersRestart does a rolling restart of the controllers while sets come and go. Each set gets its Jobs once,
// and no set is restarted.
func TestControllersRestart(t *testing.T) {
	if !everything() {
		return
	}
	observe(t, "rolling restart of the controllers", true, func(s *steps) {
		c := newCrowd(s)
		s.restart("deployment/jobset-controller", controllerPods)
		c.complete(s)
	})
}
