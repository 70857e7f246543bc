// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// schedule says when the embedded etcd is backed up.
func (r *run) schedule(store *etcd.Server) backup.Schedule {
	b := r.Storage.Backup
	directory := backup.Directory{Path: b.Dir, Keep: b.Keep, Now: time.Now}
	return backup.Schedule{
		Source: backup.Source{
			Client:  clientv3.Config{Endpoints: []string{store.Endpoint()}, DialTimeout: members.AnswerTimeout},
			Prefix:  r.Recommended.Etcd.StorageConfig.Prefix,
			DataDir: r.Storage.DataDir,
		},
		Directory: directory,
		Interval:  b.Interval,
		Uploads:   r.Storage.Upload.Uploads(directory),
	}
}

// backUpBeforeVersion makes a backup if another version of the server has written the store.
func (r *run) backUpBeforeVersion(ctx context.Context, store *etcd.Server) error {
	err := r.schedule(store).BeforeVersion(ctx, options.NewEffectiveVersion().Info().GitVersion)
	return flagerror.Wrap("backup-dir", err, "make room for the backup or use another directory; without the flag the server starts without "+
		"a backup")
}

// backUp makes backups of the embedded etcd, if there is one, until the returned function is called, which waits for the end of a
// backup that is being made.
func (r *run) backUp(ctx context.Context, store *etcd.Server, guard *storecheck.Guard) (stop func()) {
	if store == nil || r.Storage.Backup.Dir == "" {
		return func() {}
	}
	schedule := r.schedule(store)
	schedule.Serving = func() bool {
		return (guard == nil || guard.Serving()) && (r.members == nil || store.BacksUp(r.members.Answers))
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		schedule.Run(ctx)
	}()
	return func() { cancel(); <-done }
}
