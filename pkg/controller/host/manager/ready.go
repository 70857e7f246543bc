// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// state is how far a controller is.
type state int

const (
	// filled controllers have filled their caches.
	filled state = iota
	// starting controllers are about to, or about to ask for their API groups.
	starting
	// absent is for controllers that lack an API group.
	absent
	// left controllers could not be built, or have had their time.
	left
)

// Ready returns nil when the program is ready, else why it is not.
func (m *Manager) Ready() error {
	_, err := m.check()
	return err
}

// check returns why the program is not ready, and whether it may still become so: not if no controller could be built.
func (m *Manager) check() (hope bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return true, nil
	}
	count := map[state]int{}
	var reasons []string
	for _, c := range m.members {
		state, reason := c.state()
		count[state]++
		hope = hope || !c.failed
		if reason != "" {
			reasons = append(reasons, c.Name+": "+reason)
		}
	}
	if m.ready = count[filled] > 0 && count[starting] == 0; m.ready {
		return true, nil
	}
	return hope, errors.New(strings.Join(reasons, "; "))
}

// state returns how far a controller is, and why it is no further.
func (c *member) state() (state, string) {
	reason := c.reason
	if c.hasStarted() {
		unfilled := c.kind.Unfilled()
		if len(unfilled) == 0 {
			return filled, ""
		}
		reason = "waiting for caches to sync: " + strings.Join(unfilled, ", ")
	}
	switch {
	case c.absent:
		return absent, reason
	case !c.failed && time.Since(c.since) < startTimeout:
		return starting, reason
	}
	return left, reason
}

// Await waits until the program is ready, or the context ends. It is an error if no controller could be built: such a
// program is of no use, and its end is seen by whoever runs it.
func (m *Manager) Await(ctx context.Context) error {
	reported := time.Now()
	err := wait.PollUntilContextCancel(ctx, cachesPoll, true, func(context.Context) (bool, error) {
		hope, err := m.check()
		if err != nil && !hope {
			return false, fmt.Errorf("no controller can work: %w", err)
		}
		if err != nil && time.Since(reported) >= reportEvery {
			reported = time.Now()
			klog.FromContext(ctx).Info("Waiting until the controllers can work", "since", m.begun.UTC().Format(time.RFC3339), "reason", err)
		}
		return err == nil, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
