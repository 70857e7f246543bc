// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs the embedded etcd in tests.
package etcdtest

import (
	"context"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
)

// Start starts an empty etcd until the test ends, and returns a client of it.
func Start(t testing.TB) *clientv3.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "js-") // short, because it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := etcd.Open(etcd.Config{DataDir: dir, QuotaBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
