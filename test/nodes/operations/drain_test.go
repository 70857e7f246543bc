// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDrainedNode drains each node in turn. Servers, controllers and members of etcd move one after the other, and no request fails.
func TestDrainedNode(t *testing.T) {
	if !everything() {
		return
	}
	for _, node := range []string{"real-1", "real-2"} {
		t.Run(node, func(t *testing.T) {
			t.Cleanup(func() {
				if _, err := kubectl(context.Background(), "uncordon", node); err != nil {
					t.Error(err)
				}
			})
			observe(t, "drain of "+node, true, func(s *steps) {
				ends := s.fewest(map[string]string{"servers": serverPods, "members": etcdPods})
				s.drain(node)
				s.installationReady()
				for what, fewest := range ends() {
					s.Logf("at least %d %s were ready", fewest, what)
					if fewest < 2 {
						t.Errorf("%d of 3 %s were ready, must be at least 2", fewest, what)
					}
				}
			})
		})
	}
}

// drain drains a node, and waits until none of our pods is left on it: a server that is evicted serves a while longer.
func (s *steps) drain(node string) {
	s.Helper()
	must(s.T, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10m")
	s.reached("kubectl drain " + node + " has ended")
	list, err := core.CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		s.Fatal(err)
	}
	if len(list.Items) > 0 {
		s.Errorf("%d pods are left on %s", len(list.Items), node)
	}
}

// fewest looks at the pods of some selectors again and again until it is called back, and then returns the smallest
// numbers of ready pods. Pods that are terminating do not count: the servers among them still serve, but not for long.
func (s *steps) fewest(selectors map[string]string) (ends func() map[string]int) {
	ctx, cancel := context.WithCancel(s.Context())
	result := make(chan map[string]int)
	go func() {
		fewest := map[string]int{}
		for ctx.Err() == nil {
			for what, selector := range selectors {
				if n, err := readyPods(ctx, selector); err == nil {
					if least, known := fewest[what]; !known || n < least {
						fewest[what] = n
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		result <- fewest
	}()
	return func() map[string]int {
		cancel()
		return <-result
	}
}

func readyPods(ctx context.Context, selector string) (ready int, err error) {
	list, err := core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		if podReady(&list.Items[i]) {
			ready++
		}
	}
	return ready, nil
}

// podReady returns whether a pod is ready and stays.
func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return pod.DeletionTimestamp == nil
		}
	}
	return false
}
