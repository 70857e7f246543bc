// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const prefix = "/registry/test"

// store is a running embedded etcd.
type store struct {
	*etcd.Server
	source backup.Source
	client *clientv3.Client
}

func startStore(t testing.TB, dataDir string) *store {
	t.Helper()
	s := etcdtest.Run(t, dataDir)
	config := clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 10 * time.Second}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &store{s, backup.Source{Client: config, Prefix: prefix}, client}
}

func (s *store) stop(t testing.TB) {
	t.Helper()
	if err := s.client.Close(); err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func (s *store) put(t testing.TB, key, value string) int64 {
	t.Helper()
	response, err := s.client.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func (s *store) putWitness(t testing.TB, uuid, version string) int64 {
	t.Helper()
	key := witness.Key{UUID: uuid, ClusterUID: "c", Format: witness.Format, Version: version}
	return s.put(t, backup.WitnessKey(prefix), string(key.Encode()))
}

// fill stores values that nothing can make smaller.
func (s *store) fill(t testing.TB, values, size int) {
	t.Helper()
	for i := range values {
		s.put(t, prefix+"/filler/"+strconv.Itoa(i), strings.Repeat("x", size))
	}
}

func (s *store) saved(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if _, err := backup.Save(t.Context(), s.source, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func directory(t testing.TB, keep int) backup.Directory {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return backup.Directory{Path: filepath.Join(t.TempDir(), "backups"), Keep: keep, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
