// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"net"
	"sync"
)

// network relays what members send to each other, and holds it back between members that are cut off.
type network struct {
	members   []*Member
	listeners []net.Listener
	running   sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	isolated map[*Member]bool
	conns    map[net.Conn]bool
	closed   bool
}

func newNetwork(members []*Member) (*network, error) {
	n := &network{members: members, isolated: map[*Member]bool{}, conns: map[net.Conn]bool{}}
	n.changed = sync.NewCond(&n.mu)
	for _, m := range members {
		listener, err := net.Listen("tcp", m.relay)
		if err != nil {
			n.close()
			return nil, fmt.Errorf("listening for the peers of %s: %w", m.Name, err)
		}
		n.listeners = append(n.listeners, listener)
		n.running.Go(func() { n.accept(listener, m) })
	}
	return n, nil
}

func (n *network) isolate(m *Member, isolated bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isolated[m] = isolated
	n.changed.Broadcast()
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	n.changed.Broadcast()
	for conn := range n.conns {
		conn.Close()
	}
	n.mu.Unlock()
	for _, listener := range n.listeners {
		listener.Close()
	}
	n.running.Wait()
}

func (n *network) accept(listener net.Listener, to *Member) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if n.track(conn) {
			n.running.Go(func() { n.relay(conn, to) })
		}
	}
}

// track remembers a connection until forget; false means that the network is closed.
func (n *network) track(conn net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
		return false
	}
	n.conns[conn] = true
	return true
}

func (n *network) forget(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
	conn.Close()
}

// relay connects a member that has connected to the relay of another one.
func (n *network) relay(conn net.Conn, to *Member) {
	defer n.forget(conn)
	from := n.sender(conn)
	if from == nil || !n.await(from, to) {
		return
	}
	target, err := net.Dial("tcp", to.peer)
	if err != nil || !n.track(target) {
		return
	}
	defer n.forget(target)
	back := make(chan struct{})
	n.running.Go(func() {
		defer close(back)
		n.copy(conn, target, from, to)
	})
	n.copy(target, conn, from, to)
	<-back
}

// sender is the member whose process has made the connection; nil if it has ended.
func (n *network) sender(conn net.Conn) *Member {
	for _, m := range n.members {
		if process := m.current(); process != nil && process.Connected(conn.RemoteAddr()) {
			return m
		}
	}
	return nil
}

// copy passes on what comes from one end until one of them closes.
func (n *network) copy(to, from net.Conn, a, b *Member) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		size, err := from.Read(buffer)
		if size > 0 {
			if !n.await(a, b) {
				return
			}
			if _, err := to.Write(buffer[:size]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// await returns when the members may talk to each other; false means that the network is closed.
func (n *network) await(a, b *Member) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for !n.closed && (n.isolated[a] || n.isolated[b]) {
		n.changed.Wait()
	}
	return !n.closed
}
