// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// progressEvery is how often a step says how far it is.
const progressEvery = 2 * time.Second

// progress says how far a step is, for those that take longer than progressEvery. A nil one says nothing.
type progress struct {
	out   io.Writer
	clock clock.PassiveClock
	// what are the objects that are counted.
	what string

	mu          sync.Mutex
	done, total int
	began, said time.Time
}

func (m *mover) progress(s subject) *progress {
	now := m.clock.Now()
	return &progress{out: m.out, clock: m.clock, what: s.resource.Resource, began: now, said: now}
}

// of sets how many objects there are.
func (p *progress) of(total int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.done, p.began = total, 0, p.clock.Now()
}

// add counts objects that are done.
func (p *progress) add(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := p.clock.Now()
	if now.Sub(p.said) < progressEvery || p.done >= p.total {
		return
	}
	p.said = now
	left := time.Duration(float64(now.Sub(p.began)) / float64(p.done) * float64(p.total-p.done))
	fmt.Fprintf(p.out, "  %d of %d %s, about %s left\n", p.done, p.total, p.what, left.Round(time.Second))
}
