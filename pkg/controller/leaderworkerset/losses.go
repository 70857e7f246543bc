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
	// pods is how many there are, and staying how many of them are not being deleted. complete means that all were there
	// at once and stayed, and lost is how many went since then.
	pods, staying, lost int
	complete            bool
	// unknown means that it cannot be said that the pods were never complete: there were some before this process looked,
	// or it is not known how many there are to be.
	unknown bool
	// first is the pod that was lost first.
	first plan.LostPod
	// gone means that the StatefulSet is gone.
	gone bool
}

// NewLosses returns Losses that have counted nothing.
func NewLosses() *Losses { return &Losses{sets: map[types.UID]*loss{}} }

// Fill tells workers how many pods of their StatefulSet were lost, which one was lost first, and whether all of them were there at once.
func (l *Losses) Fill(w *plan.Workers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if counted := l.sets[w.UID]; counted != nil {
		w.Lost, w.FirstLost, w.Complete = counted.lost, counted.first, counted.complete
		w.NeverComplete = !counted.complete && !counted.unknown
	}
}

// Added counts a worker pod of a StatefulSet that is to have so many of them, and that stays unless it is being
// deleted. initial means that the pod was there before this process looked.
func (l *Losses) Added(set types.UID, want int, stays, initial bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.sets[set]
	if counted == nil {
		counted = &loss{}
		l.sets[set] = counted
	}
	counted.pods++
	counted.unknown = counted.unknown || initial || want <= 0
	if stays {
		counted.staying++
	}
	counted.complete = counted.complete || want > 0 && counted.staying >= want
}

// Deleting counts a worker pod of a StatefulSet that is being deleted from now on.
func (l *Losses) Deleting(set types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if counted := l.sets[set]; counted != nil {
		counted.staying--
	}
}

// GonePod is a worker pod that is gone.
type GonePod struct {
	plan.LostPod
	// Deleting means that it was counted as being deleted, and Started that it did not wait for its start any more.
	Deleting, Started bool
}

// Gone counts a worker pod that is gone. stays means that its StatefulSet is to stay, so that the pod was lost if it had started.
// A StatefulSet may be known to the API before any cache shows it, so that one which is not shown has not gone as long as it is to stay.
func (l *Losses) Gone(set types.UID, pod GonePod, shown, stays bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.sets[set]
	if counted == nil {
		return
	}
	counted.pods--
	if !pod.Deleting {
		counted.staying--
	}
	if counted.complete && pod.Started && stays {
		if counted.lost++; counted.lost == 1 {
			counted.first = pod.LostPod
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
