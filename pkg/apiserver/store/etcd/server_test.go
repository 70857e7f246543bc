// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shortDir returns a directory whose path leaves room for the name of the socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "js-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	return run(t, Config{DataDir: dir, QuotaBytes: 64 << 20, DefragmentInterval: time.Hour})
}

func run(t *testing.T, config Config) *Server {
	t.Helper()
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		s.Close()
		t.Fatal(err)
	}
	return s
}

func connect(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestDataSurvivesARestartAndAMove(t *testing.T) {
	dir := filepath.Join(shortDir(t), "first")
	s := start(t, dir)
	client := connect(t, s)
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	s.Close()

	moved := filepath.Join(filepath.Dir(dir), "second")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	s = start(t, moved)
	defer s.Close()
	client = connect(t, s)
	defer client.Close()
	response, err := client.Get(t.Context(), "key")
	if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "value" {
		t.Errorf("after the restart: %v, %v", response, err)
	}
}

func TestOnlyOneProcessUsesADirectory(t *testing.T) {
	dir := filepath.Join(shortDir(t), "data")
	s := start(t, dir)
	if _, err := Open(Config{DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("while it runs: %v", err)
	}
	s.Close()
	again, err := Open(Config{DataDir: dir})
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	again.Close()

	// A tool of etcd that was started by hand holds the lock of the database only.
	db, err := os.OpenFile(filepath.Join(dir, memberDir, "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := syscall.Flock(int(db.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("while a tool uses the database: %v", err)
	}
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(shortDir(t), "data")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("mode is %o", mode)
	}
}

func TestLongPathIsRefused(t *testing.T) {
	_, err := Open(Config{DataDir: filepath.Join(shortDir(t), strings.Repeat("x", 100))})
	if err == nil || !strings.Contains(err.Error(), "use a shorter path") {
		t.Errorf("error is %v", err)
	}
}

// TestQuietKindsLearnTheRevision watches keys without writes while others are written. The watch cache of a kind watches in this way.
func TestQuietKindsLearnTheRevision(t *testing.T) {
	if got := embedConfig(Config{}, nil).WatchProgressNotifyInterval; got != 5*time.Second {
		t.Errorf("watches report progress every %s, want 5s", got)
	}
	s := run(t, Config{DataDir: filepath.Join(shortDir(t), "data"), QuotaBytes: 64 << 20, Ephemeral: true, ProgressInterval: 100 * time.Millisecond})
	defer s.Close()
	client := connect(t, s)
	defer client.Close()
	quiet := client.Watch(t.Context(), "quiet/", clientv3.WithPrefix(), clientv3.WithProgressNotify())
	written, err := client.Put(t.Context(), "busy/a", "value")
	if err != nil {
		t.Fatal(err)
	}
	for answer := range quiet {
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		if answer.IsProgressNotify() && answer.Header.Revision >= written.Header.Revision {
			return
		}
	}
	t.Error("the watch ended before it was told the revision")
}
