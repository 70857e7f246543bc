// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
)

// Balancer passes connections to its one port on to the servers that are endpoints.
type Balancer struct {
	Port int
	// Address has the port.
	Address string

	listener net.Listener
	running  sync.WaitGroup

	mu        sync.Mutex
	endpoints []string
	conns     map[net.Conn]bool
	closed    bool
}

func newBalancer(address string) (*Balancer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for clients of the servers: %w", err)
	}
	b := &Balancer{Address: listener.Addr().String(), listener: listener, conns: map[net.Conn]bool{}}
	_, port, err := net.SplitHostPort(b.Address)
	if err == nil {
		b.Port, err = strconv.Atoi(port)
	}
	if err != nil {
		return nil, err
	}
	b.running.Go(b.accept)
	return b, nil
}

// Forward returns a balancer whose only endpoint is the target, which it does not probe. It listens on an address, which may have port 0.
func Forward(address, target string) (*Balancer, error) {
	b, err := newBalancer(address)
	if err == nil {
		b.set(target, true)
	}
	return b, err
}

// set makes an address an endpoint, or ends that.
func (b *Balancer) set(address string, endpoint bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = slices.DeleteFunc(b.endpoints, func(other string) bool { return other == address })
	if endpoint {
		b.endpoints = append(b.endpoints, address)
	}
}

// has reports whether an address is an endpoint.
func (b *Balancer) has(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.endpoints, address)
}

func (b *Balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.endpoints) == 0 {
		return ""
	}
	return b.endpoints[rand.IntN(len(b.endpoints))] //nolint:gosec // a choice, not a secret
}

func (b *Balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		if b.track(conn) {
			b.running.Go(func() { b.pass(conn) })
		}
	}
}

// pass connects a client with a server. It resets the connection of the client where a Service refuses it.
func (b *Balancer) pass(client net.Conn) {
	defer b.forget(client)
	address := b.choose()
	if address == "" {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil || !b.track(server) {
		reset(client)
		return
	}
	defer b.forget(server)
	back := make(chan struct{})
	go func() {
		defer close(back)
		relay(client, server)
	}()
	relay(server, client)
	<-back
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// relay passes on what one end sends, until it ends that.
func relay(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// track remembers a connection until forget; false means that the balancer is closed.
func (b *Balancer) track(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		conn.Close()
		return false
	}
	b.conns[conn] = true
	return true
}

func (b *Balancer) forget(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
	conn.Close()
}

// Close ends all connections.
func (b *Balancer) Close() {
	b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for conn := range b.conns {
		conn.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}
