// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Notes hold one value for each owner that has one. They need not survive the process: what they hold is found again.
type Notes[T any] struct {
	mu     sync.Mutex
	owners map[cache.ObjectName]T
}

// NewNotes returns Notes that hold nothing.
func NewNotes[T any]() *Notes[T] { return &Notes[T]{owners: map[cache.ObjectName]T{}} }

// NotesOf returns Notes that hold nothing. When the Host forgets an owner, they forget it too.
func NotesOf[T any](host *Host) *Notes[T] {
	n := NewNotes[T]()
	host.notes = append(host.notes, n)
	return n
}

// Noted returns what is noted about an owner.
func (n *Notes[T]) Noted(key cache.ObjectName) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owners[key]
}

// Note replaces what is noted about an owner.
func (n *Notes[T]) Note(key cache.ObjectName, value T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owners[key] = value
}

// Forget drops what is noted about an owner.
func (n *Notes[T]) Forget(key cache.ObjectName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.owners, key)
}

// Since returns since when something holds for an owner, which is now if it did not hold before; zero if it does not hold.
func Since(notes *Notes[time.Time], key cache.ObjectName, holds bool, now time.Time) time.Time {
	if !holds {
		notes.Forget(key)
		return time.Time{}
	}
	since := notes.Noted(key)
	if since.IsZero() {
		since = now
		notes.Note(key, since)
	}
	return since
}
