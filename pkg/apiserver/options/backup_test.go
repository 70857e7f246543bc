// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

func TestBackupFlags(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dataDir string
		backup  BackupOptions
		servers []string
		want    string
	}{
		"a directory elsewhere":           {"/var/lib/js/data", BackupOptions{"/var/lib/js/backups", time.Hour, 24}, nil, ""},
		"only before new versions":        {"/var/lib/js/data", BackupOptions{"/var/lib/js/backups", 0, 1}, nil, ""},
		"none":                            {"/var/lib/js/data", newBackupOptions(), nil, ""},
		"the data directory":              {"/var/lib/js/data", BackupOptions{"/var/lib/js/data", time.Hour, 24}, nil, "--backup-dir: /var/lib/js/data is within the data directory"},
		"below the data directory":        {"/var/lib/js/data", BackupOptions{"/var/lib/js/data/etcd/../backups", time.Hour, 24}, nil, "--backup-dir: /var/lib/js/data/etcd/../backups is within"},
		"a link into the data directory":  {data, BackupOptions{filepath.Join(link, "backups"), time.Hour, 24}, nil, "--backup-dir: " + link},
		"a name that only begins like it": {"/var/lib/js/data", BackupOptions{"/var/lib/js/data2", time.Hour, 24}, nil, ""},
		"a temporary directory":           {"/var/lib/js/data", BackupOptions{t.TempDir(), time.Hour, 24}, nil, "--backup-dir: "},
		"no memory of backups":            {"/var/lib/js/data", BackupOptions{"/var/lib/js/backups", time.Hour, 0}, nil, "--backup-keep: must be at least 1, not 0"},
		"too often":                       {"/var/lib/js/data", BackupOptions{"/var/lib/js/backups", time.Second, 24}, nil, "--backup-interval: must be at least 1m0s, or 0"},
		"backwards":                       {"/var/lib/js/data", BackupOptions{"", -time.Hour, 24}, nil, "--backup-interval: must be at least 1m0s, or 0"},
		"of an external etcd":             {"", BackupOptions{"/var/lib/js/backups", time.Hour, 24}, []string{"https://etcd:2379"}, "--backup-dir: is for the embedded etcd only: remove it, and run"},
	} {
		s, external := NewStorageOptions(), genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
		s.DataDir, s.Backup, external.StorageConfig.Transport.ServerList = tc.dataDir, tc.backup, tc.servers
		s.AllowEphemeralData = tc.dataDir == data
		err := s.Validate(external)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
