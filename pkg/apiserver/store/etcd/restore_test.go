// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// save takes a snapshot of a running member.
func save(t testing.TB, s *Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if _, err := snapshot.SaveWithVersion(t.Context(), zap.NewNop(), clientv3.Config{Endpoints: []string{s.Endpoint()}}, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func put(t testing.TB, client *clientv3.Client, key, value string) int64 {
	t.Helper()
	response, err := client.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func TestRestoreMovesTheRevision(t *testing.T) {
	dir := filepath.Join(shortDir(t), "data")
	s := start(t, dir)
	client := connect(t, s)
	saved := put(t, client, "key", "saved")
	file := save(t, s)
	for range 3 {
		put(t, client, "key", "lost")
	}
	seen := put(t, client, "other", "lost")
	client.Close()
	s.Close()
	if err := os.Rename(filepath.Join(dir, memberDir), filepath.Join(dir, "etcd.old")); err != nil {
		t.Fatal(err)
	}

	restored, err := Restore(file, dir, "")
	if err != nil || restored != saved+RevisionBump {
		t.Fatalf("revision %d, %v", restored, err)
	}
	s = start(t, dir)
	defer s.Close()
	client = connect(t, s)
	response, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "saved" || response.Kvs[0].ModRevision != saved || response.Header.Revision != restored {
		t.Errorf("the store has %v, want key=saved at revision %d, and revision %d", response, saved, restored)
	}
	// Who has seen more than the backup has must list again, and so must who has seen less.
	ctx, cancel := context.WithTimeout(t.Context(), poll.Bound(t))
	defer cancel()
	for _, revision := range []int64{saved, saved + 1, seen, seen + 1, restored - 1} {
		event := <-client.Watch(ctx, "key", clientv3.WithRev(revision))
		if !errors.Is(event.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch from revision %d: %v, %v", revision, event.Events, event.Err())
		}
	}
	watch := client.Watch(ctx, "key", clientv3.WithRev(restored+1))
	next := put(t, client, "key", "after")
	if event := <-watch; event.Err() != nil || len(event.Events) == 0 || event.Events[0].Kv.ModRevision != next || next <= restored {
		t.Errorf("the first write after revision %d is %v", restored, event)
	}
}

func TestRestoreAfterRestore(t *testing.T) {
	dir := shortDir(t)
	s := start(t, filepath.Join(dir, "first"))
	client := connect(t, s)
	put(t, client, "key", "saved")
	file := save(t, s)
	client.Close()
	s.Close()
	var last int64
	for _, name := range []string{"second", "third"} {
		revision, err := Restore(file, filepath.Join(dir, name), "")
		if err != nil || revision <= last {
			t.Fatalf("revision %d after %d, %v", revision, last, err)
		}
		last = revision
		s := start(t, filepath.Join(dir, name))
		client := connect(t, s)
		if response, err := client.Get(t.Context(), "key"); err != nil || len(response.Kvs) != 1 {
			t.Errorf("%s: %v, %v", name, response, err)
		}
		file = save(t, s)
		client.Close()
		s.Close()
	}
}

func TestRestoreReplacesNothing(t *testing.T) {
	dir := filepath.Join(shortDir(t), "data")
	s := start(t, dir)
	file := save(t, s)
	if _, err := Restore(file, dir, ""); !errors.Is(err, ErrInUse) {
		t.Errorf("while the server runs: %v", err)
	}
	s.Close()
	if _, err := Restore(file, dir, ""); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over data: %v", err)
	}
	start(t, dir).Close() // which still works

	if _, err := Restore(file, dir, "etcd.aside"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd.aside", "member", "snap", "db")); err != nil {
		t.Errorf("the data is not where it was moved to: %v", err)
	}
	start(t, dir).Close()
	if _, err := Restore(file, dir, "etcd.aside"); err == nil || !strings.Contains(err.Error(), "moving the data away") {
		t.Errorf("over data that was moved away before: %v", err)
	}
	start(t, dir).Close()
}

func TestDamagedBackupIsNotRestored(t *testing.T) {
	dir := shortDir(t)
	s := start(t, filepath.Join(dir, "first"))
	file := save(t, s)
	s.Close()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, "second")
	if _, err := Restore(file, second, ""); err == nil || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("error is %v", err)
	}
	for _, name := range []string{memberDir, restoringDir} {
		if _, err := os.Stat(filepath.Join(second, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}
