// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// Away is a place for backups outside of the cluster.
type Away interface {
	// List returns the backups that are there, the newest first.
	List(ctx context.Context) ([]Kept, error)
	// Upload stores a file under a name, all of it or nothing.
	Upload(ctx context.Context, path, name string) error
	// Prune deletes the oldest backups beyond those that are kept, and never the one that is named; 0 keeps all.
	Prune(ctx context.Context, newest string, keep int) error
}

// Uploads copy the newest backup of a directory to a place outside of the cluster. What is missing there is found by its name, so that
// neither a restart of the server nor an outage of the place leaves the newest one out.
type Uploads struct {
	Directory Directory
	// Open returns the place; it is called for each upload, so that credentials can change.
	Open func(ctx context.Context) (Away, error)
	// Keep is how many backups are kept there; 0 keeps all.
	Keep int
}

// run uploads at the start, and whenever there is a new backup, until the context ends.
func (u Uploads) run(ctx context.Context, saved <-chan struct{}) {
	registerUploads()
	for ctx.Err() == nil {
		retry := time.NewTimer(retryInterval)
		if err := u.Once(ctx); err == nil {
			retry.Stop()
		} else if ctx.Err() == nil {
			uploadFailures.Inc()
			klog.FromContext(ctx).Error(err, "The backup was not uploaded; it is kept in the directory", "backupDir", u.Directory.Path,
				"next", retryInterval)
		}
		select {
		case <-ctx.Done():
		case <-saved:
		case <-retry.C:
		}
		retry.Stop()
	}
}

// Once uploads the newest backup unless it is there.
func (u Uploads) Once(ctx context.Context) error {
	kept, err := u.Directory.List()
	if err != nil || len(kept) == 0 {
		return err
	}
	newest := kept[0]
	away, err := u.Open(ctx)
	if err != nil {
		return err
	}
	there, err := away.List(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(there, newest) {
		uploaded.Set(float64(newest.Time.Unix()))
		return nil
	}
	start := u.Directory.Now()
	if err := away.Upload(ctx, filepath.Join(u.Directory.Path, newest.Name), newest.Name); err != nil {
		return err
	}
	uploaded.Set(float64(newest.Time.Unix()))
	klog.FromContext(ctx).Info("Uploaded the backup", "file", newest.Name, "to", fmt.Sprint(away), "duration", u.Directory.Now().Sub(start))
	return away.Prune(ctx, newest.Name, u.Keep)
}

var (
	uploaded = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "upload_last_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the newest backup that was uploaded was begun, in seconds since 1970; 0 if there is none. Only with --backup-upload.",
	})
	uploadFailures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "upload_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Uploads of backups that failed. Only with --backup-upload.",
	})
	registerUploads = sync.OnceFunc(func() { legacyregistry.MustRegister(uploaded, uploadFailures) })
)
