// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// ways are the ways in which an administrator lets go of the pods on a lost node, with the command that "why" prints,
// and what is to do once the node is back.
var ways = []struct {
	name string
	args func(node string) []string
	back func(node string) []string
}{
	{
		"out of service",
		func(node string) []string {
			return []string{"taint", "nodes", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"}
		},
		func(node string) []string {
			return []string{"taint", "nodes", node, "node.kubernetes.io/out-of-service-"}
		},
	},
	{
		"deleted",
		func(node string) []string { return []string{"delete", "node", node} },
		func(node string) []string { return []string{"get", "node", node} },
	},
}

// TestLostNode kills everything on a node, kubelet and containerd included. No kubelet ends its pods, so that a Job of a set keeps its
// name, and a group of a LeaderWorkerSet its pod, until an administrator does what "why" says. Then both run on the other node.
func TestLostNode(t *testing.T) {
	for i, way := range ways {
		if i > 0 && !everything() {
			return
		}
		t.Run(strings.ReplaceAll(way.name, " ", "-"), func(t *testing.T) {
			w := newWorkload(t)
			node := minority(t)
			if everything() || shared.Borrowed {
				t.Cleanup(func() { returned(t, node, way.back(node)) })
			}
			observe(t, "loss of a node that is then "+way.name, false, func(s *steps) {
				if err := shared.LoseNode(node); err != nil {
					t.Fatal(err)
				}
				s.reached(node + " was killed")
				w.lost(s, node)
				w.named(s, node, way.args(node))
				must(t, way.args(node)...)
				s.reached("kubectl " + strings.Join(way.args(node), " "))
				w.movedFrom(s, node)
				s.installationReady()
			})
		})
	}
}

// minority returns the node with fewer members of etcd: with the other one, two nodes lose the majority.
func minority(t *testing.T) string {
	t.Helper()
	members := map[string]int{}
	for _, node := range (&steps{Test: framework.Test{T: t}}).pods(etcdPods) {
		members[node]++
	}
	if members["real-1"] < members["real-2"] {
		return "real-1"
	}
	return "real-2"
}

// lost waits until Kubernetes has noticed, and has deleted the pods of the workload on the node, which stay.
func (w *workload) lost(s *steps, node string) {
	s.Helper()
	framework.Eventually(s, node+" is not ready", func(ctx context.Context) error {
		n, err := core.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is ready")
	})
	s.reached(node + " is not ready")
	framework.Eventually(s, "the pods on "+node+" are terminating", func(context.Context) error {
		for name, pod := range w.pods(s) {
			if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
	s.reached("its pods are terminating")
}

// named asks why neither set goes on.
func (w *workload) named(s *steps, node string, args []string) {
	s.Helper()
	for _, name := range []string{setName, "lws/" + groupsName} {
		out, err := command(s.Context(), shared.Program("kubectl-jobset"), "why", name, "--namespace="+w.namespace)
		if err != nil {
			s.Fatal(err)
		}
		for _, want := range []string{"the node " + node + " is lost", "kubectl " + strings.Join(args, " ")} {
			if !strings.Contains(out, want) {
				s.Errorf("why %s does not say %q:\n%s", name, want, out)
			}
		}
	}
	if job := w.job(s); job.UID != w.uid {
		s.Errorf("the Job %s was replaced while a pod of it was left", job.Name)
	}
	s.reached("why names the node and the command")
}

// movedFrom waits until the pods that were left are gone, and both sets run elsewhere.
func (w *workload) movedFrom(s *steps, node string) {
	s.Helper()
	framework.Eventually(s, "no pod is left on "+node, func(context.Context) error {
		for name, pod := range w.pods(s) {
			if pod.Spec.NodeName == node {
				return fmt.Errorf("%s is left", name)
			}
		}
		return nil
	})
	s.reached("no pod of the sets is left on it")
	w.ready(s)
	s.reached("the sets run on the other node")
	if js := w.set(s); js.Status.Restarts != 1 {
		s.Errorf("the set was restarted %d times, want once", js.Status.Restarts)
	}
	if job := w.job(s); job.UID == w.uid {
		s.Errorf("the Job %s was not replaced", job.Name)
	}
}

// installationReady waits until all pods of the installation are ready, on whatever nodes there are.
func (s *steps) installationReady() {
	s.Helper()
	if err := allReady(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.reached("servers, controllers and etcd are complete")
}

// returned brings a node back.
func returned(t *testing.T, node string, args []string) {
	t.Helper()
	if err := shared.Script("up"); err != nil {
		t.Fatal(err)
	}
	framework.EventuallyNoProblem(t, func() string {
		if _, err := kubectl(context.Background(), args...); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := errors.Join(waitNode(node), allReady(context.Background())); err != nil {
		t.Error(err)
	}
}

func waitNode(node string) error {
	_, err := kubectl(context.Background(), "wait", "--for=condition=Ready", "--timeout=5m", "node/"+node)
	return err
}
