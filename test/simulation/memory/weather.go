// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// Weather is the trouble that a Server has, by verb, for some time. What becomes of the n-th request of a verb follows
// from the seed, in whatever order requests of other verbs arrive.
type Weather struct {
	seed uint64

	mu     sync.Mutex
	storms map[string]storm
}

// storm is the trouble that requests of a verb have.
type storm struct {
	Trouble
	percent int
	since   time.Time
}

// NewWeather returns fine weather.
func NewWeather(seed uint64) *Weather { return &Weather{seed: seed, storms: map[string]storm{}} }

// refusals are the answers of a server in trouble to requests that change nothing.
var refusals = []int{http.StatusNotFound, http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests}

// Turn makes the weather of one of the verbs better, or worse. It returns what it has become.
func (w *Weather) Turn(d simulation.Dice, verbs ...string) (verb string, t Trouble) {
	verb = simulation.OneOf(d, verbs...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, stormy := w.storms[verb]; stormy && d.Percent(70) {
		delete(w.storms, verb)
		return verb, Trouble{}
	}
	switch changes := slices.Contains([]string{"create", "patch", "apply", "delete", "update"}, verb); {
	case changes && d.Percent(40):
		t = simulation.OneOf(d, Trouble{Broken: true, Lost: true}, Trouble{Broken: true, Late: simulation.OneOf(d, time.Second, 20*time.Second)})
	case d.Percent(20):
		t = Trouble{Hang: true}
	case d.Percent(20):
		t = Trouble{Broken: true}
	default:
		t = Trouble{Code: simulation.OneOf(d, refusals...)}
	}
	w.storms[verb] = storm{t, simulation.OneOf(d, 100, 100, 50), time.Now()}
	return verb, t
}

// Set sets what becomes of all requests of a verb.
func (w *Weather) Set(verb string, t Trouble) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storms[verb] = storm{t, 100, time.Now()}
}

// Clear ends all trouble, or that of the verbs.
func (w *Weather) Clear(verbs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for verb := range w.storms {
		if len(verbs) == 0 || slices.Contains(verbs, verb) {
			delete(w.storms, verb)
		}
	}
}

// Fails returns for how long all requests of a verb have failed; 0 if some may not.
func (w *Weather) Fails(verb string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, stormy := w.storms[verb]
	if !stormy || s.percent < 100 || s.Trouble == (Trouble{}) {
		return 0
	}
	return time.Since(s.since)
}

// Trouble chooses at random how a request fails.
func (w *Weather) Trouble(r *Request) Trouble {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, stormy := w.storms[r.Verb]
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(r.Verb))
	if !stormy || !simulation.NewDice(w.seed^hash.Sum64(), uint64(r.Number)).Percent(s.percent) {
		return Trouble{}
	}
	return s.Trouble
}
