// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
)

const (
	// defaultMemory is the memory that the manifests give to the server, which counts if GOMEMLIMIT is not set.
	defaultMemory = 2 << 30
	// watchMemory is what a watch takes that waits for events, in bytes; one with a connection of its own takes half as much again.
	watchMemory = 80 << 10
	// webSocketMemory is what a watch over WebSocket may take: it makes two copies of an event, which can have as many bytes as an object.
	webSocketMemory = 3 << 20
	// retrySeconds is after which time a client that had too many watches may try again.
	retrySeconds = 5
)

// memoryLimit returns the memory of the server in bytes.
func memoryLimit() int {
	if memory := debug.SetMemoryLimit(-1); memory != math.MaxInt64 {
		return int(memory)
	}
	return defaultMemory
}

// number counts the watches of each user.
type number struct {
	// what is counted.
	what string
	// perUser and total are the bounds.
	perUser, total int

	mu    sync.Mutex
	all   int
	users map[string]int
}

// newNumber returns bounds that follow from the memory of the server and of a watch, in bytes: all watches take at most
// five eighths of the memory, and those of one user three quarters of that.
func newNumber(what string, memory, each int) *number {
	total := memory / 8 * 5 / each
	return &number{what: what, perUser: total / 4 * 3, total: total, users: map[string]int{}}
}

// begin counts a watch of a user, who must end it; or returns an error if there are too many.
func (n *number) begin(user string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.users[user] >= n.perUser:
		refused.WithLabelValues(reasonUser).Inc()
		return errors.NewTooManyRequests(fmt.Sprintf("user %q has %d %s already, which is the most for one user; "+
			"use fewer, or give the server more memory", user, n.perUser, n.what), retrySeconds)
	case n.all >= n.total:
		refused.WithLabelValues(reasonTotal).Inc()
		return errors.NewTooManyRequests(fmt.Sprintf("there are %d %s already, which is the most for the memory of this server; "+
			"use fewer, or give the server more memory", n.total, n.what), retrySeconds)
	}
	n.users[user]++
	n.all++
	return nil
}

// end takes a watch out that has ended.
func (n *number) end(user string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all--
	if n.users[user]--; n.users[user] == 0 {
		delete(n.users, user)
	}
}
