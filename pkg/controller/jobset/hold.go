// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// held remembers what was seen of sets whose status was held back. It need not survive the process: what was held back is
// seen again.
type held struct {
	mu   sync.Mutex
	sets map[cache.ObjectName]plan.Noted
}

func newHeld() *held { return &held{sets: map[cache.ObjectName]plan.Noted{}} }

// noted returns what is noted about a set.
func (h *held) noted(key cache.ObjectName) plan.Noted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sets[key]
}

// note notes what was seen of a set instead of what was noted before.
func (h *held) note(key cache.ObjectName, noted plan.Noted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets[key] = noted
}

// forget is for sets whose status is as it should be, and for those that are gone.
func (h *held) forget(key cache.ObjectName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sets, key)
}
