// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ours is the port as the server of this package sees it. It can stop to accept connections without closing the port.
type ours struct {
	*net.TCPListener
	over atomic.Bool
}

// Accept implements net.Listener.
func (l *ours) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err != nil && l.over.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close makes Accept return, and leaves the port open.
func (l *ours) Close() error {
	l.over.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// theirs is the port as the server sees it that follows. It is that server's with the first connection that it wants.
type theirs struct {
	net.Listener
	take func()
	once sync.Once
}

// Accept implements net.Listener.
func (l *theirs) Accept() (net.Conn, error) {
	l.once.Do(l.take)
	return l.Listener.Accept()
}
