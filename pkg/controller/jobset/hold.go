// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// countsEvery is how often the counts in the status of one set are written while nothing else changes in it.
const countsEvery = 5 * time.Second

// held remembers when statuses were written, and what was seen since. It need not survive the process: what was held
// back is seen again.
type held struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	sets map[cache.ObjectName]heldSet
}

type heldSet struct {
	written time.Time
	noted   plan.Noted
}

func newHeld(clock clock.PassiveClock) *held {
	return &held{clock: clock, sets: map[cache.ObjectName]heldSet{}}
}

// back tells for how long the next status of a set is held back; 0 when it is to be written now. A status that is held back
// is noted.
func (h *held) back(key cache.ObjectName, obs plan.Observed, p plan.Plan) time.Duration {
	if !plan.StatusMayWait(obs, p) {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	set, found := h.sets[key]
	left := countsEvery - h.clock.Since(set.written)
	if !found || left <= 0 {
		return 0
	}
	set.noted = plan.Note(obs, p)
	h.sets[key] = set
	return left
}

// noted returns what was noted about a set.
func (h *held) noted(key cache.ObjectName) plan.Noted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sets[key].noted
}

// wrote notes that the status of a set was written.
func (h *held) wrote(key cache.ObjectName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets[key] = heldSet{written: h.clock.Now()}
}

// forget is for sets that are gone.
func (h *held) forget(key cache.ObjectName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sets, key)
}
