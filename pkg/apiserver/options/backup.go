// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

const (
	defaultBackupInterval = time.Hour
	minBackupInterval     = time.Minute
	// DefaultBackupKeep is how many backups a directory keeps.
	DefaultBackupKeep = 24
)

// BackupOptions say where and how often the embedded etcd is backed up.
type BackupOptions struct {
	// Dir is the directory of the backups; without it none is made.
	Dir string
	// Interval is the time between two backups; 0 means only before another version writes.
	Interval time.Duration
	// Keep is how many backups are kept.
	Keep int
}

func newBackupOptions() BackupOptions {
	return BackupOptions{Interval: defaultBackupInterval, Keep: DefaultBackupKeep}
}

func (b *BackupOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&b.Dir, "backup-dir", b.Dir, "Directory for backups of the embedded etcd, best on another volume than --data-dir and of "+
		"this installation alone. Without it no backups are made. A backup is also made before a new version of the server writes for "+
		"the first time; if that backup fails, the server does not start.")
	fs.DurationVar(&b.Interval, "backup-interval", b.Interval, "Time between two backups. 0 makes backups only before a new version of "+
		"the server writes; \"jobset-apiserver store backup\" makes one at any time.")
	fs.IntVar(&b.Keep, "backup-keep", b.Keep, "Number of backups to keep in --backup-dir. Older ones are deleted when a new one was verified.")
}

func (b *BackupOptions) validate(dataDir string, allowEphemeral bool) error {
	if b.Interval < 0 || b.Interval > 0 && b.Interval < minBackupInterval {
		return flagerror.New("backup-interval", "must be at least %s, or 0 for no periodic backups, not %s", minBackupInterval, b.Interval)
	}
	if b.Keep < 1 {
		return flagerror.New("backup-keep", "must be at least 1, not %d", b.Keep)
	}
	if b.Dir == "" {
		return nil
	}
	if err := etcd.CheckApart(dataDir, b.Dir); err != nil {
		return flagerror.Wrap("backup-dir", err, "use a directory elsewhere, best on another volume")
	}
	if allowEphemeral {
		return nil
	}
	return flagerror.Wrap("backup-dir", etcd.CheckPersistent(b.Dir), "use a persistent directory (tests may set --allow-ephemeral-data)")
}
