// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// These limit the rate at which Services are switched between the controller and the cluster: switchBurst at once, then
// one per switchEvery. For each change, the addresses of all pods are written again, by us or by the cluster, and when
// DNS servers fail or flags change, all Services are to be switched at the same time. A Service counts once for each
// switchPods pods.
const (
	switchEvery = 100 * time.Millisecond
	switchBurst = 50
	switchPods  = 100
)

// switchLimiter gives each Service that is to be switched its turn.
type switchLimiter struct {
	mu sync.Mutex
	// next is the first free turn.
	next  time.Time
	turns map[cache.ObjectName]time.Time
}

func newSwitchLimiter() *switchLimiter {
	return &switchLimiter{turns: map[cache.ObjectName]time.Time{}}
}

// wait returns the time until the turn of a set with so many pods.
func (l *switchLimiter) wait(key cache.ObjectName, pods int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn, waits := l.turns[key]
	if !waits {
		if unused := now.Add(-switchBurst * switchEvery); l.next.Before(unused) {
			l.next = unused
		}
		turn = l.next
		l.next = l.next.Add(switchEvery * time.Duration(max(1, pods/switchPods)))
		l.turns[key] = turn
	}
	return max(0, turn.Sub(now))
}

// forget drops the turn of a set whose Service was switched, or stays as it is.
func (l *switchLimiter) forget(key cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.turns, key)
}

// turn returns the time until the writer of a Service's addresses may change; 0 if it may change now, or is to stay. A
// Service whose addresses neither the cluster nor the controller writes does not wait, nor does one for which our slices
// have been written already.
func (c *Syncer) turn(obs *observed, view *view) time.Duration {
	switch {
	case obs.service == nil, obs.verdict == undecided, (obs.verdict == byUs) == switched(obs.service):
		c.limiter.forget(obs.key)
		return 0
	case obs.verdict == byUs && len(obs.managed) > 0:
		return 0
	case obs.verdict == byCluster && (obs.denial.holds(obs.now) || len(obs.managed) == 0 && len(view.podsOf(obs.key, obs.serviceName)) > 0):
		return 0
	}
	pods := 1
	if obs.set != nil {
		pods = obs.set.pods
	}
	return c.limiter.wait(obs.key, pods, obs.now)
}
