// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
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
		return flagError("backup-interval", "must be at least %s, or 0 for no periodic backups, not %s", minBackupInterval, b.Interval)
	}
	if b.Keep < 1 {
		return flagError("backup-keep", "must be at least 1, not %d", b.Keep)
	}
	if b.Dir == "" {
		return nil
	}
	if err := etcd.CheckApart(dataDir, b.Dir); err != nil {
		return wrapFlagError("backup-dir", err, "use a directory elsewhere, best on another volume")
	}
	if allowEphemeral {
		return nil
	}
	return wrapFlagError("backup-dir", etcd.CheckPersistent(b.Dir), "use a persistent directory (tests may set --allow-ephemeral-data)")
}

// schedule says when the embedded etcd is backed up.
func (o *Options) schedule(store *etcd.Server) backup.Schedule {
	b := o.Storage.Backup
	directory := backup.Directory{Path: b.Dir, Keep: b.Keep, Now: time.Now}
	return backup.Schedule{
		Source: backup.Source{
			Client:  clientv3.Config{Endpoints: []string{store.Endpoint()}, DialTimeout: etcdTimeout},
			Prefix:  o.Recommended.Etcd.StorageConfig.Prefix,
			DataDir: o.Storage.DataDir,
		},
		Directory: directory,
		Interval:  b.Interval,
		Uploads:   o.Storage.Upload.uploads(directory),
	}
}

// backUpBeforeVersion makes a backup if another version of the server has written the store.
func (o *Options) backUpBeforeVersion(ctx context.Context, store *etcd.Server) error {
	err := o.schedule(store).BeforeVersion(ctx, newEffectiveVersion().Info().GitVersion)
	return wrapFlagError("backup-dir", err, "make room for the backup or use another directory; without the flag the server starts without "+
		"a backup")
}

// backUp makes backups of the embedded etcd, if there is one, until the returned function is called, which waits for the end of a
// backup that is being made.
func (o *Options) backUp(ctx context.Context, store *etcd.Server, guard *storecheck.Guard) (stop func()) {
	if store == nil || o.Storage.Backup.Dir == "" {
		return func() {}
	}
	schedule := o.schedule(store)
	if guard != nil {
		schedule.Serving = guard.Serving
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		schedule.Run(ctx)
	}()
	return func() { cancel(); <-done }
}
