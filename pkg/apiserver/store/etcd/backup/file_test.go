// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestFileHasTheStore(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.put(t, prefix+"/a/1", "old")
	s.put(t, prefix+"/a/gone", "x")
	s.put(t, "/other", "x")
	if _, err := s.client.Delete(t.Context(), prefix+"/a/gone"); err != nil {
		t.Fatal(err)
	}
	s.put(t, prefix+"/a/2", "two")
	at := s.putWitness(t, "u", "v1")
	last := s.put(t, prefix+"/a/1", "new")
	path := s.saved(t)
	s.put(t, prefix+"/a/1", "later")

	f, err := backup.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []backup.Entry{{prefix + "/a/2", []byte("two"), 6}, {prefix + "/a/1", []byte("new"), last}}
	var got []backup.Entry
	if err := f.ForEach(prefix+"/a/", func(e backup.Entry) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	found, err := f.Witness(prefix)
	if diff := cmp.Diff(&witness.Found{Key: witness.Key{UUID: "u", ClusterUID: "c", Format: witness.Format, Version: "v1"}, ModRevision: at}, found); diff != "" || err != nil {
		t.Errorf("%v, key (-want +got):\n%s", err, diff)
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil || f.Revision != last || status.Revision != last {
		t.Errorf("revision is %d, and %d for etcdutl, want %d: %v", f.Revision, status.Revision, last, err)
	}
	if found, err := f.Witness("/registry/another"); found != nil || err != nil {
		t.Errorf("the key of another server is %v, %v", found, err)
	}
}

// hashed writes content with its hash.
func hashed(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append(content, sum[:]...)
}

func foreignDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOtherFilesAreRefused(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.fill(t, 10, 1000)
	good, err := os.ReadFile(s.saved(t))
	if err != nil {
		t.Fatal(err)
	}
	foreign := foreignDatabase(t)
	cases := map[string]struct {
		content []byte
		want    string
	}{
		"empty":                           {nil, "is empty"},
		"a text":                          {[]byte("backup\n"), "does not end with a hash"},
		"a hash alone":                    {good[len(good)-sha256.Size:], "does not end with a hash"},
		"cut off":                         {good[:len(good)/2], "does not end with a hash"},
		"without its last byte":           {good[:len(good)-1], "does not end with a hash"},
		"cut off, with the size of a one": {good[:len(good)-512], "is damaged: its content has the hash"},
		"a database without a hash":       {foreign, "does not end with a hash"},
		"a database that is not of etcd":  {hashed(foreign), "is not a snapshot of etcd: the database has no bucket"},
		"no database":                     {hashed(make([]byte, 4096)), "is not a snapshot of etcd: file size too small"},
	}
	for i := range 64 {
		flipped := append([]byte(nil), good...)
		flipped[i*(len(good)-1)/63] ^= 1 << (i % 8)
		cases["with a bit flipped at "+string(rune('0'+i))] = struct {
			content []byte
			want    string
		}{flipped, "is damaged: its content has the hash"}
	}
	for name, tc := range cases {
		path := filepath.Join(t.TempDir(), "backup.db")
		if err := os.WriteFile(path, tc.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Open(path); err == nil || !strings.Contains(err.Error(), path+" "+tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := backup.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := backup.Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// TestRevisionOfADroppedHistory: etcd knows its revision by what it has dropped if the last change was a deletion.
func TestRevisionOfADroppedHistory(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	f, err := backup.Open(s.saved(t))
	if err != nil || f.Revision != 1 {
		t.Fatalf("%+v, %v: an empty store", f, err)
	}
	f.Close()
	s.put(t, prefix+"/a", "x")
	deleted, err := s.client.Delete(t.Context(), prefix+"/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	f, err = backup.Open(s.saved(t))
	if err != nil || f.Revision != deleted.Header.Revision {
		t.Fatalf("%+v, %v: want revision %d", f, err, deleted.Header.Revision)
	}
	f.Close()
}
