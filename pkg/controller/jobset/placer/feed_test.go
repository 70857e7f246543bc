// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestFeed shows a placer what it depends on without any watch.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &env{T: t, sets: map[string]*jobsetv1alpha2.JobSet{}, woken: map[string]bool{}}
		p, feed, err := NewFed(Config{
			Kube: kubernetes.New(nil), Clock: e.clock, WhenFull: placement.WhenFullWait,
			Placed: func() ([]*jobsetv1alpha2.JobSet, error) { return nil, nil },
			Wake: func(key cache.ObjectName) {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.woken[key.Name] = true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		e.Placer = p
		name := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
		show := func(do func(runtime.Object) error, objects ...runtime.Object) {
			t.Helper()
			for _, obj := range objects {
				if err := do(obj); err != nil {
					t.Fatal(err)
				}
			}
		}
		show(feed.Show, node("a", 0), &appsv1.DaemonSet{ObjectMeta: name}, &corev1.LimitRange{ObjectMeta: name}, &nodev1.RuntimeClass{ObjectMeta: name},
			&schedulingv1.PriorityClass{ObjectMeta: name}, &corev1.Pod{ObjectMeta: name})
		js := e.set("js", 2, 0)
		if _, got := e.ask(js); got != "NoDomain" {
			t.Errorf("with one node: %q", got)
		}
		show(feed.Show, node("b", 0))
		e.awaitWoken("js")
		if _, got := e.ask(js); got != "a b" {
			t.Errorf("with another node: %q", got)
		}
		show(feed.Remove, node("b", 0), node("c", 0))
		other := e.set("other", 1, 1)
		if _, got := e.ask(other); got != "NoDomain" {
			t.Errorf("without that: %q", got)
		}
		if err := feed.Show(&corev1.Secret{}); err == nil || err.Error() != "no placement depends on a *v1.Secret" {
			t.Errorf("for a Secret: %v", err)
		}
	})
}

// TestGivenDomainsBecomeFree has a set be suspended or deleted before its status holds what it was given. Those that wait must look again.
func TestGivenDomainsBecomeFree(t *testing.T) {
	for name, forget := range map[string]func(*Placer, cache.ObjectName){"suspended": (*Placer).Withdraw, "deleted": (*Placer).Forget} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, placement.WhenFullWait, node("a", 0))
				first, second := e.set("first", 1, 0), e.set("second", 1, 1)
				e.await(first, "a")
				if _, got := e.ask(second); got != "NoDomain" {
					t.Fatalf("while the domain is given: %q", got)
				}
				e.clock.Step(gather)
				e.mu.Lock()
				clear(e.woken)
				e.mu.Unlock()
				forget(e.Placer, e.key(first))
				e.awaitWoken("second")
				e.await(second, "a")
			})
		})
	}
}
