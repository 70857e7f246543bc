// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestGoneLeadersAreRememberedByTheOneThatActs has leader pods go.
func TestGoneLeadersAreRememberedByTheOneThatActs(t *testing.T) {
	key := cache.NewObjectName("ns", "s")
	c := controllerOfSet(t)
	leader := newWatchedPod(&corev1.Pod{ObjectMeta: childMeta("s-1", "0")})
	c.onPods().OnDelete(leader)
	if got := c.gone.noted(key); len(got) > 0 {
		t.Errorf("a standby remembers %v", got)
	}
	c.leads.Store(true)
	c.onPods().OnDelete(leader)
	c.onPods().OnDelete(newWatchedPod(&corev1.Pod{ObjectMeta: childMeta("s-1-1", "1")}))
	if got := c.gone.noted(key); len(got) != 1 || got[0].UID != "child" || got[0].Controller != "leader" {
		t.Errorf("remembered: %+v", got)
	}
	other := childMeta("t-1", "0")
	other.Labels["leaderworkerset.sigs.k8s.io/name"] = "t"
	c.onPods().OnDelete(newWatchedPod(&corev1.Pod{ObjectMeta: other}))
	if got := c.gone.noted(cache.NewObjectName("ns", "t")); len(got) > 0 {
		t.Errorf("remembered of a set that is not known: %v", got)
	}
	c.noteEvaluated(key, []types.UID{"another"})
	if got := c.gone.noted(key); len(got) != 1 {
		t.Errorf("forgotten before it was evaluated: %v", got)
	}
	set, _ := c.deps.Caches.Set(key)
	c.Conclude(&plan.Observed{Set: set}, plan.Outcome{Recorded: []types.UID{"child"}})
	if got := c.gone.noted(key); len(got) > 0 {
		t.Errorf("remembered although the stored status names it: %v", got)
	}
	c.onPods().OnDelete(leader)
	c.noteEvaluated(key, []types.UID{"child"})
	if got := c.gone.noted(key); len(got) > 0 || !c.evaluated.Noted(key)["child"] {
		t.Errorf("remembered after it was evaluated: %v", got)
	}
	for range 2 * maxGoneLeaders {
		c.onPods().OnDelete(leader)
	}
	if got := len(c.gone.noted(key)); got != maxGoneLeaders {
		t.Errorf("%d pods are remembered", got)
	}
	if c.Forget(key); len(c.gone.of) > 0 || c.evaluated.Noted(key) != nil {
		t.Error("pods of a set that is gone are remembered")
	}
}
