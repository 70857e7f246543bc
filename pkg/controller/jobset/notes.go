// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// notes hold one value for each set that has one. They need not survive the process: what they hold is found again.
type notes[T any] struct {
	mu   sync.Mutex
	sets map[cache.ObjectName]T
}

func newNotes[T any]() *notes[T] { return &notes[T]{sets: map[cache.ObjectName]T{}} }

// noted returns what is noted about a set.
func (n *notes[T]) noted(key cache.ObjectName) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sets[key]
}

// note replaces what is noted about a set.
func (n *notes[T]) note(key cache.ObjectName, value T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sets[key] = value
}

// forget is for sets about which nothing is to be noted, and for those that are gone.
func (n *notes[T]) forget(key cache.ObjectName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sets, key)
}
