// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// BackupUploadOptions say where backups of the embedded etcd are copied to.
type BackupUploadOptions struct {
	// Address is s3://BUCKET/PREFIX/; empty for no copies.
	Address string
	// Keep is how many backups are kept there; 0 keeps all.
	Keep int
	// S3 says how the object storage is reached.
	S3 bucket.Options
}

func (u *BackupUploadOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&u.Address, "backup-upload", u.Address, "Bucket that each backup in --backup-dir is copied to, as s3://BUCKET/PREFIX/, with "+
		"a prefix for this installation alone. A copy that fails is tried again, and nothing else is affected.")
	fs.IntVar(&u.Keep, "backup-upload-keep", u.Keep, "Number of backups to keep in --backup-upload. 0 deletes none, for a bucket with a "+
		"lifecycle rule.")
	u.S3.AddFlags(fs)
}

func (u *BackupUploadOptions) set() bool { return u.Address != "" || u.S3.Set() }

func (u *BackupUploadOptions) validate(dir string) error {
	if u.Address == "" {
		if u.S3.Set() {
			return flagerror.New("backup-upload", "must be set to s3://BUCKET/PREFIX/ if flags that begin with --s3- are; set it, or remove them")
		}
		return nil
	}
	if dir == "" {
		return flagerror.New("backup-upload", "needs --backup-dir, whose backups are copied: set it")
	}
	if u.Keep < 0 {
		return flagerror.New("backup-upload-keep", "must be at least 0, not %d", u.Keep)
	}
	if _, err := bucket.ParseDirectory(u.Address); err != nil {
		return flagerror.New("backup-upload", "%w", err)
	}
	return u.S3.Validate()
}

// Uploads returns what copies the backups of a directory; nil if nothing does.
func (u *BackupUploadOptions) Uploads(from backup.Directory) *backup.Uploads {
	if u.Address == "" {
		return nil
	}
	return &backup.Uploads{Directory: from, Keep: u.Keep, Open: func(ctx context.Context) (backup.Away, error) {
		place, err := bucket.ParseDirectory(u.Address)
		if err != nil {
			return nil, err
		}
		return u.S3.Open(ctx, place)
	}}
}
