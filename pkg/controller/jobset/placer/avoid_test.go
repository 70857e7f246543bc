// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestDomainsWithNodesToAvoid restarts a set that avoids a node of its domain: it stays there if the rest is large
// enough for its two pods, and leaves otherwise. A node to avoid that is in another domain, or is gone, changes
// nothing.
func TestDomainsWithNodesToAvoid(t *testing.T) {
	hosts := func(names ...[2]any) (out []*corev1.Node) {
		for _, name := range names {
			n := node(name[0].(string), name[1].(int))
			n.Labels[corev1.LabelHostname] = n.Name
			out = append(out, n)
		}
		return out
	}
	two := hosts([2]any{"a", 0}, [2]any{"a", 1}, [2]any{"b", 0}, [2]any{"b", 1})
	one := hosts([2]any{"a", 0}, [2]any{"b", 0})
	for name, tc := range map[string]struct {
		nodes    []*corev1.Node
		avoids   string
		forgets  bool
		duration time.Duration
		want     string
	}{
		"the rest is large enough":     {nodes: two, avoids: "a-0", duration: time.Hour, want: "a"},
		"the rest is too small":        {nodes: one, avoids: "a-0", duration: time.Hour, want: "b"},
		"a node of another domain":     {nodes: one, avoids: "b-0", duration: time.Hour, want: "a"},
		"a node that is gone":          {nodes: one, avoids: "c-0", duration: time.Hour, want: "a"},
		"the time is over":             {nodes: one, avoids: "a-0", duration: -time.Hour, want: "a"},
		"forgotten for lack of others": {nodes: one, avoids: "a-0", duration: time.Hour, forgets: true, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, placement.WhenFullWait)
				for _, n := range tc.nodes {
					if _, err := e.kube.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				js := e.set("js", 1, 0)
				js = e.written(js, e.await(js, "a")).DeepCopy()
				js.Status.Restarts = 1
				attempt := jobsetv1alpha2.Attempt{Number: 2, AvoidedNodes: []jobsetv1alpha2.AvoidedNode{
					{Name: tc.avoids, Attempt: 1, Until: metav1.NewTime(e.clock.Now().Add(tc.duration))}}}
				if now := metav1.NewMicroTime(e.clock.Now()); tc.forgets {
					attempt.ForgetTime = &now
				}
				js.Status.Attempts = []jobsetv1alpha2.Attempt{attempt}
				e.store(js)
				if _, got := e.ask(js); got != tc.want {
					t.Errorf("the Job is at %q, want %q", got, tc.want)
				}
			})
		})
	}
}
