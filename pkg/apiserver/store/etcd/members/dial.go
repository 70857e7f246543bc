// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"fmt"
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// Lookup makes the etcd clients of the storage use Dial.
func (m *Members) Lookup(egressselector.NetworkContext) (utilnet.DialFunc, error) { return m.Dial, nil }

// Prefer makes etcd clients use one member while it answers: connections to the others lead to that one, too. So all members must have
// certificates with the names of all.
func (m *Members) Prefer(preferred string) egressselector.Lookup {
	return func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			return m.dial(ctx, network, address, preferred)
		}, nil
	}
}

// Dial connects to a member. While the member is avoided, it waits.
func (m *Members) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return m.dial(ctx, network, address, "")
}

func (m *Members) dial(ctx context.Context, network, address, preferred string) (net.Conn, error) {
	for {
		target := m.target(address, preferred)
		if back := m.avoided(target); back != nil {
			select {
			case <-back:
			case <-ctx.Done():
				return nil, fmt.Errorf("%s does not answer, other members do: %w", target, ctx.Err())
			}
			continue
		}
		conn, err := m.dialer.DialContext(ctx, network, target)
		if err != nil {
			return nil, err
		}
		if m.target(address, preferred) == target { // else the preferred member has begun or ceased to answer
			return m.track(target, conn, preferred), nil
		}
		_ = conn.Close()
	}
}

// target returns the member to which a client that prefers another one is connected.
func (m *Members) target(address, preferred string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if member := m.members[preferred]; member != nil && member.back == nil {
		return preferred
	}
	return address
}

// Reconnect closes the connections to a member: what it has not answered ends, and clients connect again.
func (m *Members) Reconnect(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if member := m.members[address]; member != nil {
		for conn := range member.conns {
			closeTracked(conn)
		}
	}
}

// leave closes the connections to other members of clients that prefer the one that answers again.
func (m *Members) leave(preferred string) {
	for _, other := range m.members {
		for conn, prefers := range other.conns {
			if prefers == preferred && other.address != preferred {
				closeTracked(conn)
			}
		}
	}
}

func closeTracked(conn net.Conn) {
	if t, ok := conn.(*tracked); ok {
		_ = t.Conn.Close()
	}
}
