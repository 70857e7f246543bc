// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/egressselector"
)

// standIn is a member that listens, and answers reads as the test says.
type standIn struct {
	address string
	err     error
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return &standIn{address: listener.Addr().String()}
}

func newMembers(t *testing.T, count int) (*Members, []*standIn) {
	t.Helper()
	m := &Members{members: map[string]*member{}, now: time.Now}
	var standIns []*standIn
	for range count {
		s := newStandIn(t)
		standIns = append(standIns, s)
		m.add(s.address, func(context.Context) error { return s.err })
	}
	return m, standIns
}

// lookAt reads from each of the members so many times.
func (m *Members) lookAt(ctx context.Context, times int, standIns ...*standIn) {
	for range times {
		for _, s := range standIns {
			m.look(ctx, m.members[s.address])
		}
	}
}

func (s *standIn) dial(t *testing.T, m *Members) net.Conn {
	t.Helper()
	conn, err := m.Dial(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// open reports whether a connection on which nothing arrives was not closed.
func open(conn net.Conn) bool {
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestMemberThatHangsIsAvoided(t *testing.T) {
	m, members := newMembers(t, 3)
	hung, other := members[0], members[1]
	toHung, toOther := hung.dial(t, m), other.dial(t, m)
	m.lookAt(t.Context(), 1, members...)
	hung.err = errors.New("timed out")
	m.lookAt(t.Context(), maxFailures-1, members...)
	if !open(toHung) {
		t.Fatalf("the connection is closed after %d failures, must be after %d", maxFailures-1, maxFailures)
	}
	m.lookAt(t.Context(), 1, hung)
	if open(toHung) {
		t.Error("the connection to a member that hangs is open, must be closed")
	}
	if !open(toOther) {
		t.Error("the connection to a member that answers is closed, must be open")
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := m.Dial(short, "tcp", hung.address); err == nil {
		conn.Close()
		t.Error("a member that hangs was dialed, must wait")
	}
	dialed := make(chan error, 1)
	go func() {
		conn, err := m.Dial(t.Context(), "tcp", hung.address)
		if err == nil {
			conn.Close()
		}
		dialed <- err
	}()
	hung.err = nil
	m.lookAt(t.Context(), 1, hung)
	if err := <-dialed; err != nil {
		t.Errorf("dialing a member that answers again: %v", err)
	}
	if conn := hung.dial(t, m); !open(conn) {
		t.Error("a new connection to a member that answers again is closed, must be open")
	}
}

// A process without CPU ends reads much later than their timeout. No connection is closed then: writes under way would fail.
func TestOversleptReadsDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		took time.Duration
		open bool
	}{
		"a read that ends in time": {took: timeout},
		"a read that ends late":    {took: timeout + 2*overslept, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, members := newMembers(t, 2)
			slow, now := members[1], time.Now()
			m.now = func() time.Time { return now }
			conn := slow.dial(t, m)
			m.lookAt(t.Context(), 1, members...)
			m.members[slow.address].read = func(context.Context) error {
				now = now.Add(tc.took)
				return context.DeadlineExceeded
			}
			for range 2 * maxFailures {
				now = now.Add(interval)
				m.lookAt(t.Context(), 1, members...)
			}
			if got := open(conn); got != tc.open {
				t.Errorf("the connection is open: %t, must be %t", got, tc.open)
			}
		})
	}
}

func TestNoMemberIsAvoidedWhenNoneAnswers(t *testing.T) {
	m, members := newMembers(t, 3)
	m.lookAt(t.Context(), 1, members...)
	var conns []net.Conn
	for _, s := range members {
		conns = append(conns, s.dial(t, m))
		s.err = errors.New("no leader")
	}
	m.lookAt(t.Context(), 2*maxFailures, members...)
	for i, conn := range conns {
		if !open(conn) {
			t.Errorf("the connection to member %d is closed, must be open", i)
		}
	}
	members[0].err = nil
	m.lookAt(t.Context(), maxFailures, members...)
	for i, conn := range conns {
		if got, want := open(conn), i == 0; got != want {
			t.Errorf("when the first one answers again, the connection to member %d is open: %t, must be %t", i, got, want)
		}
	}
}

// A read that began while there was no leader fails after another member has answered. That says nothing about its member.
func TestReadsFromBeforeTheLeaderDoNotCount(t *testing.T) {
	m, members := newMembers(t, 2)
	m.lookAt(t.Context(), 1, members...)
	conn := members[1].dial(t, m)
	for _, s := range members {
		s.err = errors.New("no leader")
	}
	m.lookAt(t.Context(), maxFailures, members...)
	slow := m.members[members[1].address]
	slow.read = func(context.Context) error {
		members[0].err = nil
		m.lookAt(t.Context(), 1, members[0])
		return members[1].err
	}
	m.lookAt(t.Context(), 1, members[1])
	members[0].err = errors.New("no leader")
	m.lookAt(t.Context(), 1, members[0])
	m.lookAt(t.Context(), 1, members[1])
	if !open(conn) {
		t.Error("the connection is closed, must be open")
	}
}

func TestClosedConnectionsAreForgotten(t *testing.T) {
	m, members := newMembers(t, 1)
	conn := members[0].dial(t, m)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if left := len(m.members[members[0].address].conns); left != 0 {
		t.Errorf("%d connections are remembered, must be none", left)
	}
}

func TestMembersAreDistrustedUntilTheyAnswer(t *testing.T) {
	m, members := newMembers(t, 2)
	m.Distrust()
	learner, other := members[0], members[1]
	learner.err = errors.New("rpc not supported for learner")
	m.lookAt(t.Context(), 1, members...)
	other.dial(t, m)
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := m.Dial(short, "tcp", learner.address); err == nil {
		conn.Close()
		t.Error("a member that has not answered was dialed, must wait")
	}
	learner.err = nil
	m.lookAt(t.Context(), 1, learner)
	learner.dial(t, m)
}

// TestPreferredMemberIsUsedWhileItAnswers connects to another member, as the etcd client does in turn.
func TestPreferredMemberIsUsedWhileItAnswers(t *testing.T) {
	m, members := newMembers(t, 3)
	own, other := members[0], members[1]
	lookup := m.Prefer(own.address)
	dial, err := lookup(egressselector.Etcd.AsNetworkContext())
	if err != nil {
		t.Fatal(err)
	}
	connect := func() net.Conn {
		conn, err := dial(t.Context(), "tcp", other.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	m.lookAt(t.Context(), 1, members...)
	first := connect()
	if got := first.RemoteAddr().String(); got != own.address {
		t.Errorf("connected to %s, prefers %s", got, own.address)
	}
	own.err = errors.New("timed out")
	m.lookAt(t.Context(), maxFailures, members...)
	if open(first) {
		t.Error("the connection to the preferred member, which hangs, is open")
	}
	second := connect()
	direct := other.dial(t, m)
	if got := second.RemoteAddr().String(); got != other.address {
		t.Errorf("connected to %s while the preferred member hangs", got)
	}
	own.err = nil
	m.lookAt(t.Context(), 1, own)
	if open(second) || !open(direct) {
		t.Error("the preferred member answers again: the connection to another one must be closed, one without preference not")
	}
	if got := connect().RemoteAddr().String(); got != own.address {
		t.Errorf("connected to %s, prefers %s", got, own.address)
	}
}
