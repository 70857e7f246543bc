// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Losses count the worker pods that vanished or were replaced while their StatefulSet stayed. A StatefulSet creates the next pod of a name
// within moments, so that no cache shows that one was missing. It is known to this process only; standbys count too, because their
// caches are filled.
type Losses struct {
	mu sync.Mutex
	// sets are StatefulSets by their UID.
	sets map[types.UID]*loss
}

// loss is what is counted of one StatefulSet.
type loss struct {
	// pods is how many there are, complete means that all were there at once, and lost is how many went since then.
	pods, lost int
	complete   bool
	// first is the pod that was lost first.
	first plan.LostPod
	// gone means that the StatefulSet is gone.
	gone bool
}

// NewLosses returns Losses that have counted nothing.
func NewLosses() *Losses { return &Losses{sets: map[types.UID]*loss{}} }

// Of returns how many pods of a StatefulSet were lost, and which one was lost first.
func (l *Losses) Of(set types.UID) (int, plan.LostPod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if counted := l.sets[set]; counted != nil {
		return counted.lost, counted.first
	}
	return 0, plan.LostPod{}
}

// Added counts a worker pod of a StatefulSet that is to have so many of them.
func (l *Losses) Added(set types.UID, want int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.sets[set]
	if counted == nil {
		counted = &loss{}
		l.sets[set] = counted
	}
	counted.pods++
	counted.complete = counted.complete || want > 0 && counted.pods >= want
}

// Gone counts a worker pod that is gone. stays means that its StatefulSet is to stay, so that the pod was lost. A StatefulSet may be known to the API
// before any cache shows it, so that one which is not shown has not gone as long as it is to stay.
func (l *Losses) Gone(set types.UID, pod plan.LostPod, shown, stays bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.sets[set]
	if counted == nil {
		return
	}
	counted.pods--
	if counted.complete && stays {
		if counted.lost++; counted.lost == 1 {
			counted.first = pod
		}
	}
	if counted.pods <= 0 && (counted.gone || !shown && !stays) {
		delete(l.sets, set)
	}
}

// Forget is for StatefulSets that are gone. One with pods is forgotten with the last of them.
func (l *Losses) Forget(set types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.sets[set]
	switch {
	case counted == nil:
	case counted.pods <= 0:
		delete(l.sets, set)
	default:
		counted.gone = true
	}
}
