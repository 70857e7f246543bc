// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"
	"time"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
)

func TestBackupUploadFlags(t *testing.T) {
	both := bucket.Options{CredentialsFile: "file", CredentialsDir: "dir"}
	for name, tc := range map[string]struct {
		upload  BackupUploadOptions
		dir     string
		servers []string
		want    string
	}{
		"a bucket":            {BackupUploadOptions{Address: "s3://backups/jobset/", Keep: 24}, "/var/lib/js/backups", nil, ""},
		"all are kept":        {BackupUploadOptions{Address: "s3://backups/jobset/"}, "/var/lib/js/backups", nil, ""},
		"none":                {BackupUploadOptions{Keep: 24}, "", nil, ""},
		"no directory":        {BackupUploadOptions{Address: "s3://backups/"}, "", nil, "--backup-upload: needs --backup-dir"},
		"no slash":            {BackupUploadOptions{Address: "s3://backups/x"}, "/var/lib/js/backups", nil, `--backup-upload: "s3://backups/x" must end with a slash`},
		"no bucket":           {BackupUploadOptions{Address: "/backups/"}, "/var/lib/js/backups", nil, `--backup-upload: "/backups/" must begin with s3://`},
		"a negative number":   {BackupUploadOptions{Address: "s3://backups/", Keep: -1}, "/var/lib/js/backups", nil, "--backup-upload-keep: must be at least 0, not -1"},
		"two credentials":     {BackupUploadOptions{Address: "s3://backups/", S3: both}, "/var/lib/js/backups", nil, "--s3-credentials-file: must not be set together"},
		"no address":          {BackupUploadOptions{S3: both}, "/var/lib/js/backups", nil, "--backup-upload: must be set to s3://BUCKET/PREFIX/ if"},
		"of an external etcd": {BackupUploadOptions{Address: "s3://backups/"}, "", []string{"https://etcd:2379"}, "--backup-upload: is for the embedded etcd only"},
	} {
		s, external := NewStorageOptions(), genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
		s.Upload, s.Backup = tc.upload, BackupOptions{tc.dir, time.Hour, 24}
		if external.StorageConfig.Transport.ServerList = tc.servers; tc.servers == nil {
			s.DataDir = "/var/lib/js/data"
		}
		err := s.Validate(external)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
