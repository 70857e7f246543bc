// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members keeps the connections of the server away from members of etcd that hang, and close to the member of this server.
//
// The etcd client sends requests to all members in turn. It notices a closed connection, but not a member that is connected and
// does not answer: one that is stopped, cut off from the others, or on a machine without power. A third of the requests would
// wait for it until keepalive ends the connection after 40 seconds, or longer: a member without its peers answers keepalive.
//
// So each member is asked for a linearizable read from time to time. One that fails twice, while another member answers, is
// avoided: its connections are closed, and new ones wait until it answers again. When no member answers, nothing is changed.
package members

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"path"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
)

const (
	// interval is the time between two reads of a member, and timeout how long one may take.
	interval = 500 * time.Millisecond
	timeout  = 2 * time.Second
	// overslept is by how much later than its timeout a read ends in a process that lacks CPU. Such a read says nothing about its member.
	overslept = 250 * time.Millisecond
	// maxFailures is how many reads in a row fail before a member is avoided.
	maxFailures = 2
	// lostAfter is how long no member has answered when all are lost: as long as the kubelet needs to find a server not ready. Elections and
	// most stalls of a disk are over by then.
	lostAfter = 10 * time.Second
	// keepAliveTime is short, because a connection whose other end is gone would hide that the member is back.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
)

// Members are the members of one etcd cluster.
type Members struct {
	mu      sync.Mutex
	members map[string]*member
	dialer  net.Dialer
	now     func() time.Time
}

// member is one of them, by the address that the etcd client dials.
type member struct {
	address string
	read    func(context.Context) error

	// failures counts the reads that have failed in a row although another member answered, of which the first began at failing.
	failures int
	failing  time.Time
	// failed says that the last read has failed. While it has not, answered is when it began, and steady when the first one began
	// since the last failure.
	failed           bool
	answered, steady time.Time
	// conns are the connections to it, each with the member that its client prefers.
	conns map[net.Conn]string
	// back is closed when the member answers again; nil unless it is avoided.
	back chan struct{}
}

// New returns the members of the configuration. They are used as they are until Run looks after them.
func New(ctx context.Context, config storagebackend.TransportConfig, prefix string) (*Members, error) {
	settings := clientv3.Config{Context: ctx, DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout, Logger: zap.NewNop()}
	var err error
	if settings.TLS, err = TLS(config); err != nil {
		return nil, err
	}
	key := path.Join("/", prefix, "health")
	m := &Members{members: map[string]*member{}, now: time.Now}
	for _, server := range config.ServerList {
		u, err := url.Parse(server)
		if err != nil {
			return nil, err
		}
		settings.Endpoints = []string{server}
		client, err := clientv3.New(settings)
		if err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", server, err)
		}
		context.AfterFunc(ctx, func() { _ = client.Close() })
		m.add(u.Host, func(ctx context.Context) error {
			_, err := client.Get(ctx, key, clientv3.WithKeysOnly())
			return err
		})
	}
	return m, nil
}

// Distrust avoids each member until it answers, and must be called before Run. A learner, and a member that looks for the others, accept
// connections and refuse requests.
func (m *Members) Distrust() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, member := range m.members {
		member.back = make(chan struct{})
	}
}

// TLS returns the settings of TLS for clients of etcd, or nil if the configuration names no files.
func TLS(config storagebackend.TransportConfig) (*tls.Config, error) {
	if config.CertFile+config.KeyFile+config.TrustedCAFile == "" {
		return nil, nil
	}
	info := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
	settings, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the certificates for etcd: %w", err)
	}
	return settings, nil
}

func (m *Members) add(address string, read func(context.Context) error) {
	m.members[address] = &member{address: address, read: read, conns: map[net.Conn]string{}}
}

// Answers returns whether the member is used, because it answers.
func (m *Members) Answers(address string) bool { return m.avoided(address) == nil }

func (m *Members) avoided(address string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if member := m.members[address]; member != nil {
		return member.back
	}
	return nil
}

// Lost returns whether no member answers any more: they have no leader, or this server cannot reach them.
func (m *Members) Lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var last time.Time
	for _, member := range m.members {
		if !member.failed {
			return false
		}
		if member.answered.After(last) {
			last = member.answered
		}
	}
	return !last.IsZero() && m.now().Sub(last) >= lostAfter
}

// track remembers a connection until it is closed.
func (m *Members) track(address string, conn net.Conn, preferred string) net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	member := m.members[address]
	if member == nil {
		return conn
	}
	t := &tracked{Conn: conn}
	t.forget = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(member.conns, t)
	}
	member.conns[t] = preferred
	return t
}

type tracked struct {
	net.Conn
	forget func()
}

func (t *tracked) Close() error {
	t.forget()
	return t.Conn.Close()
}

// Run looks after the members until the context ends.
func (m *Members) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, member := range m.members {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { m.look(ctx, member) }, interval)
		})
	}
	running.Wait()
}

// look reads from a member once.
func (m *Members) look(ctx context.Context, member *member) {
	begin := m.now()
	limited, cancel := context.WithTimeout(ctx, timeout)
	err := member.read(limited)
	cancel()
	if ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.succeeded(ctx, member, begin)
		return
	}
	member.failed = true
	if !m.otherAnswers(member, begin) || m.now().Sub(begin) > timeout+overslept {
		return
	}
	if member.failures++; member.failures == 1 {
		member.failing = begin
	}
	if member.failures >= maxFailures && member.back == nil {
		m.avoid(ctx, member, err)
	}
}

func (m *Members) succeeded(ctx context.Context, member *member, begin time.Time) {
	if member.failed || member.steady.IsZero() {
		member.steady = begin
	}
	member.failures, member.failed, member.answered = 0, false, begin
	if member.back != nil {
		close(member.back)
		member.back = nil
		klog.FromContext(ctx).Info("Member of etcd answers again", "member", member.address)
		m.leave(member.address)
	}
}

// otherAnswers reports whether another member answers, and did so before the failed read began and after the first failure. Without a
// leader no member answers; when there is one again, the first member to answer says nothing about the others.
func (m *Members) otherAnswers(member *member, begin time.Time) bool {
	for _, other := range m.members {
		steady := !other.failed && !other.steady.IsZero() && other.steady.Before(begin)
		if other != member && steady && (member.failures == 0 || other.answered.After(member.failing)) {
			return true
		}
	}
	return false
}

// avoid closes the connections to a member. The etcd client repeats the reads that were under way at other members.
func (m *Members) avoid(ctx context.Context, member *member, err error) {
	klog.FromContext(ctx).Info("Member of etcd does not answer, others do; it is avoided until it answers", "member", member.address,
		"connections", len(member.conns), "err", err)
	member.back = make(chan struct{})
	for conn := range member.conns {
		closeTracked(conn)
	}
}
