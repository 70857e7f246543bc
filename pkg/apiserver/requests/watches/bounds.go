// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
)

const (
	// watchMemory is what a watch takes that waits for events, in bytes, and connectionMemory what the connection adds that it is sent
	// over. See docs/performance.md.
	watchMemory, connectionMemory = 96 << 10, 80 << 10
	// webSocketMemory is what a watch over WebSocket may take: it makes two copies of an event, which can have as many bytes as an object.
	webSocketMemory = 3 << 20
	// retrySeconds is after which time a client that had too many watches may try again.
	retrySeconds = 5
)

// memory is what watches share with objects.
type memory interface {
	// SetWatches notes how many watches there are, and how many bytes are counted for them.
	SetWatches(number int, bytes int64)
	// Fits returns whether objects leave room for so many more bytes of watches.
	Fits(bytes int64) bool
	// Collect makes sure that garbage does not count as objects.
	Collect()
}

// bounds count the watches, and what they and their connections take.
type bounds struct {
	memory memory
	// perUser, perNamespace and total are the bounds in bytes. Only accounts that may use the reserve get more than unreserved; the
	// namespace and the objects do not bound them.
	perUser, perNamespace, unreserved, total int64

	mu                sync.Mutex
	all               use
	users, namespaces map[string]use
	connections       map[string]*connection
}

// use is how many watches there are, and the bytes that are counted for them.
type use struct {
	watches int
	bytes   int64
}

// connection is a connection over which watches are sent.
type connection struct {
	// watches is how many each account has.
	watches map[account]int
	// payer is the account for which the memory of the connection is counted. It has a watch.
	payer account
}

// watch is what a request asks for.
type watch struct {
	account account
	// connection has an identity that no other connection has at the same time.
	connection string
	webSocket  bool
}

// bytes is what the watch takes beside its connection.
func (w watch) bytes() int64 {
	if w.webSocket {
		return webSocketMemory
	}
	return watchMemory
}

// newBounds returns bounds that follow from the memory of the server in bytes: all watches take at most five eighths of it. A tenth of
// that is reserved. One user gets three quarters, and the service accounts of one namespace four fifths.
func newBounds(m memory, limit int64) *bounds {
	total := limit / 8 * 5
	return &bounds{
		memory: m, perUser: total / 4 * 3, perNamespace: total / 5 * 4, unreserved: total / 10 * 9, total: total,
		users: map[string]use{}, namespaces: map[string]use{}, connections: map[string]*connection{},
	}
}

// begin counts a watch, which the caller must end; or returns an error if there are too many.
func (b *bounds) begin(w watch) error {
	err := b.try(w)
	if err != nil && err.reason == reasonObjects {
		b.memory.Collect()
		err = b.try(w)
	}
	if err != nil {
		refused.WithLabelValues(err.reason).Inc()
		return errors.NewTooManyRequests(err.message, retrySeconds)
	}
	return nil
}

func (b *bounds) try(w watch) *shortage {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes, of := w.bytes(), b.connections[w.connection]
	if of == nil {
		bytes += connectionMemory
	}
	if lack := b.lack(w.account, bytes); lack != nil {
		return lack
	}
	if of == nil {
		of = &connection{watches: map[account]int{}, payer: w.account}
		b.connections[w.connection] = of
	}
	of.watches[w.account]++
	b.count(w.account, use{1, bytes})
	b.memory.SetWatches(b.all.watches, b.all.bytes)
	return nil
}

// end takes a watch out that has ended. Its connection counts for another account while that has watches there.
func (b *bounds) end(w watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(w.account, use{-1, -w.bytes()})
	of := b.connections[w.connection]
	if of.watches[w.account]--; of.watches[w.account] == 0 {
		delete(of.watches, w.account)
	}
	if of.watches[of.payer] == 0 {
		b.count(of.payer, use{0, -connectionMemory})
		delete(b.connections, w.connection)
		if len(of.watches) > 0 {
			of.payer = slices.MinFunc(slices.Collect(maps.Keys(of.watches)), func(a, b account) int { return strings.Compare(a.user, b.user) })
			b.count(of.payer, use{0, connectionMemory})
			b.connections[w.connection] = of
		}
	}
	b.memory.SetWatches(b.all.watches, b.all.bytes)
}

// count adds to what an account has.
func (b *bounds) count(a account, more use) {
	b.all = b.all.plus(more)
	add(b.users, a.user, more)
	if a.namespace != "" {
		add(b.namespaces, a.namespace, more)
	}
}

func add(to map[string]use, name string, more use) {
	if to[name] = to[name].plus(more); to[name] == (use{}) {
		delete(to, name)
	}
}

func (u use) plus(more use) use { return use{u.watches + more.watches, u.bytes + more.bytes} }

// String says how many watches there are.
func (u use) String() string {
	if u.watches == 1 {
		return fmt.Sprintf("1 watch already, counted at %d MiB", u.bytes>>20)
	}
	return fmt.Sprintf("%d watches already, counted at %d MiB", u.watches, u.bytes>>20)
}

// shortage is why a watch is refused.
type shortage struct {
	// reason is a label of metrics.
	reason, message string
}

// remedy is what a user can do who has too many watches.
const remedy = "use fewer, let more of them share a connection, or give the server more memory"

// lack returns why an account gets no more watches of so many bytes, and nil if it does.
func (b *bounds) lack(a account, bytes int64) *shortage {
	user, namespace := b.users[a.user], b.namespaces[a.namespace]
	switch {
	case user.bytes+bytes > b.perUser:
		return &shortage{reasonUser, fmt.Sprintf("user %q has %s, which is the most for one user; %s", a.user, user, remedy)}
	case b.all.bytes+bytes > b.total:
		return &shortage{reasonTotal, fmt.Sprintf("there are %s, which is the most for the memory of this server; %s", b.all, remedy)}
	case a.reserved:
		return nil
	case a.namespace != "" && namespace.bytes+bytes > b.perNamespace:
		return &shortage{reasonNamespace, fmt.Sprintf("the service accounts of namespace %q have %s, which is the most for one namespace; %s",
			a.namespace, namespace, remedy)}
	case b.all.bytes+bytes > b.unreserved:
		return &shortage{reasonTotal, fmt.Sprintf("there are %s, and the rest of the memory for watches is reserved for administrators and "+
			"controllers of the cluster; %s", b.all, remedy)}
	case !b.memory.Fits(bytes):
		return &shortage{reasonObjects, fmt.Sprintf("there are %s, and stored objects leave no memory for more; %s, or delete JobSets",
			b.all, remedy)}
	}
	return nil
}
