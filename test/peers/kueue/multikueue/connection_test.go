// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// connection passes the connections of clients to the API of a cluster on, until it is cut.
type connection struct {
	// Kubeconfig has the address of the connection.
	Kubeconfig []byte

	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// connect listens at a port of this machine for clients of the cluster.
func connect(c *localcluster.Cluster) (*connection, error) {
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil { // Kueue reads no files
		return nil, err
	}
	l := &connection{conns: map[net.Conn]bool{}}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, err
		}
		l.target, cluster.Server = server.Host, fmt.Sprintf("https://%s", l.listener.Addr())
	}
	if l.Kubeconfig, err = clientcmd.Write(*config); err != nil {
		return nil, err
	}
	go l.accept()
	return l, nil
}

func (l *connection) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.pass(client)
	}
}

// pass copies both directions until either side ends.
func (l *connection) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !l.track(client) {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
}

func (l *connection) track(client net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.conns[client] = true
	}
	return !l.cut
}

// set cuts the connection, or lets it pass again.
func (l *connection) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for client := range l.conns {
		if cut {
			_ = client.Close()
		}
	}
}

func (l *connection) close() {
	if l != nil {
		l.set(true)
		_ = l.listener.Close()
	}
}
