// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs the embedded etcd in tests that need its data only while they run. Tests of durability run it as the server does.
package etcdtest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
)

const (
	// memory is a directory whose files live in memory, used if it has enough room: containers may have only 64 MiB there.
	memory = "/dev/shm"
	enough = 1 << 30

	quotaBytes = 1 << 30
)

// init makes members allocate less for their logs in advance: 64 MB twice would be filled with zeros in memory.
func init() { wal.SegmentSizeBytes = 4 << 20 }

// Dir returns a directory for members that end with the test. Its path leaves room for the name of a socket.
func Dir(t testing.TB) string {
	t.Helper()
	var parent string
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err == nil && stat.Bavail*uint64(stat.Bsize) >= enough {
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, "js-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Run runs a member in a directory until it is closed.
func Run(t testing.TB, dataDir string) *etcd.Server {
	t.Helper()
	server, err := etcd.Open(etcd.Config{DataDir: dataDir, QuotaBytes: quotaBytes, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(context.WithoutCancel(t.Context())); err != nil {
		server.Close()
		t.Fatal(err)
	}
	return server
}

// StartServer starts an empty member, which runs until the test ends.
func StartServer(t testing.TB) *etcd.Server {
	t.Helper()
	server := Run(t, filepath.Join(Dir(t), "data"))
	t.Cleanup(server.Close)
	return server
}

// Start starts an empty member, which runs until the test ends, and returns a client of it.
func Start(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{StartServer(t).Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
