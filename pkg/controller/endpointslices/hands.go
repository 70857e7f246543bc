// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// These limit the rate at which Services are switched between the controller and the cluster: handsBurst at once, then
// one per handsEvery. For each change, the addresses of all pods are written again, by us or by the cluster, and when
// DNS servers fail or flags change, all Services are to change hands at the same time. A Service counts once for each
// handsPods pods.
const (
	handsEvery = 100 * time.Millisecond
	handsBurst = 50
	handsPods  = 100
)

// hands gives each Service that is to change hands its turn.
type hands struct {
	mu sync.Mutex
	// next is the first free turn.
	next  time.Time
	turns map[cache.ObjectName]time.Time
}

func newHands() *hands { return &hands{turns: map[cache.ObjectName]time.Time{}} }

// wait returns the time until the turn of a set with so many pods.
func (h *hands) wait(key cache.ObjectName, pods int, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	turn, waits := h.turns[key]
	if !waits {
		if unused := now.Add(-handsBurst * handsEvery); h.next.Before(unused) {
			h.next = unused
		}
		turn = h.next
		h.next = h.next.Add(handsEvery * time.Duration(max(1, pods/handsPods)))
		h.turns[key] = turn
	}
	return max(0, turn.Sub(now))
}

// forget drops the turn of a set that has changed hands, or is not to.
func (h *hands) forget(key cache.ObjectName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.turns, key)
}

// turn returns the time until the writer of a Service's addresses may change; 0 if it may change now, or is to stay. A
// Service whose addresses neither the cluster nor the controller writes does not wait, nor does one for which slices of
// ours have been written already.
func (c *Syncer) turn(obs *observed, view *view) time.Duration {
	switch {
	case obs.service == nil, obs.verdict == undecided, (obs.verdict == byUs) == switched(obs.service):
		c.hands.forget(obs.key)
		return 0
	case obs.verdict == byUs && len(obs.ours) > 0:
		return 0
	case obs.verdict == byCluster && (obs.denial.holds(obs.now) || len(obs.ours) == 0 && len(view.podsOf(obs.key, obs.serviceName)) > 0):
		return 0
	}
	pods := 1
	if obs.set != nil {
		pods = obs.set.pods
	}
	return c.hands.wait(obs.key, pods, obs.now)
}
