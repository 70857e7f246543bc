// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// hiddenValue stands for a value that no client has read.
	hiddenValue = "(never seen)"
	// maxHidden is how many hidden writes can be needed to explain an answer: a deletion and a creation turn any state into an unknown one,
	// and a third makes the object absent.
	maxHidden = 3
)

// hidden are the writes of an object without an answer whose content no client saw. It is not known whether they happened, but some answers
// need them: a conflict, or an object that is gone. To try each of them at any time, as porcupine would, takes ages if there are a hundred,
// so they are applied where an answer needs one.
type hidden struct {
	// updates are the first times at which updates of the versions began.
	updates map[int64]time.Duration
	creates []time.Duration
	deletes []*Operation
}

// add adds a write. They come in the order in which they began.
func (h *hidden) add(o *Operation) {
	switch o.Kind {
	case Create:
		h.creates = append(h.creates, o.Start)
	case Delete:
		h.deletes = append(h.deletes, o)
	default:
		if _, ok := h.updates[o.Version]; !ok {
			h.updates[o.Version] = o.Start
		}
	}
}

// happen returns what the register can become through one hidden write that began before the end of an operation.
func (h *hidden) happen(r register, end time.Duration) []register {
	var next []register
	if !r.exists {
		if r.creates < len(h.creates) && h.creates[r.creates] <= end {
			created := r.added(hiddenValue)
			created.creates++
			next = append(next, created)
		}
		return next
	}
	if h.updated(r, end) {
		updated := r
		updated.version, updated.floor, updated.value = 0, max(r.floor, r.version), hiddenValue
		next = append(next, updated)
	}
	if r.deletes < len(h.deletes) && h.deletes[r.deletes].Start <= end && h.deleted(r.uid, end) {
		deleted := r.removed()
		deleted.deletes++
		next = append(next, deleted)
	}
	return next
}

// updated returns whether an update of the version of the register began before the end.
func (h *hidden) updated(r register, end time.Duration) bool {
	if r.value == hiddenValue {
		return false
	}
	if r.version != 0 {
		start, ok := h.updates[r.version]
		return ok && start <= end
	}
	for version, start := range h.updates {
		if version > r.floor && start <= end {
			return true
		}
	}
	return false
}

// deleted returns whether a deletion that fits the UID began before the end.
func (h *hidden) deleted(uid types.UID, end time.Duration) bool {
	return slices.ContainsFunc(h.deletes, func(o *Operation) bool {
		return o.Start <= end && (o.UID == "" || uid == "" || o.UID == uid)
	})
}
