// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// retryInterval is the most that passes until a backup that failed is tried again.
const retryInterval = 5 * time.Minute

// lookInterval is the time between two looks at a store that is not served when a backup is due.
const lookInterval = time.Second

// Schedule backs up at intervals.
type Schedule struct {
	Source    Source
	Directory Directory
	// Interval is the time between two backups; 0 makes none.
	Interval time.Duration
	// Serving returns whether the store is served; nil if it always is. One that is refused is empty, foreign or old, and its backups
	// would push out those of the right store.
	Serving func() bool
	// Uploads copy each backup elsewhere; nil for none.
	Uploads *Uploads
}

// Run makes backups until the context ends. The first one is due an interval after the newest that exists, so that restarts neither
// add backups nor leave any out.
func (s Schedule) Run(ctx context.Context) {
	register()
	wait := s.first(ctx)
	var uploading sync.WaitGroup
	defer uploading.Wait()
	saved := make(chan struct{}, 1)
	if s.Uploads != nil {
		uploading.Go(func() { s.Uploads.run(ctx, saved) })
	}
	if s.Interval == 0 {
		return
	}
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.Serving != nil && !s.Serving() {
			wait = min(s.Interval, lookInterval)
			continue
		}
		wait = s.Interval
		err := s.Once(ctx)
		select {
		case saved <- struct{}{}:
		default:
		}
		if err != nil && ctx.Err() == nil {
			wait = min(s.Interval, retryInterval)
			klog.FromContext(ctx).Error(err, "The backup failed; nothing else is affected", "backupDir", s.Directory.Path, "next", wait)
		}
	}
}

// first cleans up and returns when the first backup is due.
func (s Schedule) first(ctx context.Context) time.Duration {
	if err := s.Directory.Clean(); err != nil {
		klog.FromContext(ctx).Error(err, "Deleting what an interrupted backup has left", "backupDir", s.Directory.Path)
	}
	kept, err := s.Directory.List()
	if err != nil || len(kept) == 0 {
		return 0
	}
	observe(kept[0].Time, -1)
	return min(max(0, s.Interval-s.Directory.Now().Sub(kept[0].Time)), s.Interval)
}

// Once makes a backup.
func (s Schedule) Once(ctx context.Context) error {
	start := s.Directory.Now()
	saved, err := s.Directory.Save(ctx, s.Source)
	switch {
	case ctx.Err() != nil && saved == nil:
		return err
	case err != nil:
		failures.Inc()
	}
	if saved == nil {
		return err
	}
	observe(start, saved.Bytes)
	log := klog.FromContext(ctx)
	log.Info("Backed up the store", "file", saved.Path, "revision", saved.Revision, "bytes", saved.Bytes, "duration",
		s.Directory.Now().Sub(start))
	if err != nil {
		log.Error(err, "Deleting old backups", "backupDir", s.Directory.Path)
	}
	return nil
}

// BeforeVersion makes a backup if another version of the server has written the store, before this version writes anything. A backup
// of the same revision is enough, so that a server that restarts does not push older backups out.
func (s Schedule) BeforeVersion(ctx context.Context, version string) error {
	found, revision, err := s.Source.Witness(ctx)
	if err != nil {
		return err
	}
	if found == nil || found.Version == version {
		return nil
	}
	log := klog.FromContext(ctx).WithValues("from", found.Version, "to", version)
	if s.Directory.Path == "" {
		log.Info("Another version of the server has written the store. It is not backed up, because --backup-dir is not set")
		return nil
	}
	register()
	// If the list fails, the backup reports the same error.
	if kept, err := s.Directory.List(); err == nil && len(kept) > 0 && kept[0].Revision == revision {
		log.Info("Another version of the server has written the store, and the newest backup has all of it", "file", kept[0].Name)
		return nil
	}
	log.Info("Another version of the server has written the store: backing it up first")
	if err := s.Once(ctx); err != nil {
		return fmt.Errorf("backing up the store that version %s has written: %w", found.Version, err)
	}
	return nil
}

const subsystem = "jobset_apiserver_backup"

var (
	lastSuccess = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the newest backup of the store was begun, in seconds since 1970; 0 if there is none. Only with --backup-dir.",
	})
	lastBytes = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_size_bytes", StabilityLevel: metrics.ALPHA,
		Help: "Size of the last backup of this process.",
	})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Backups of the store that failed.",
	})
	// register makes the metrics visible: where nothing is backed up, a time of 0 would be an alarm.
	register = sync.OnceFunc(func() { legacyregistry.MustRegister(lastSuccess, lastBytes, failures) })
)

// observe records the newest backup, and its size if it is not negative.
func observe(at time.Time, bytes int64) {
	lastSuccess.Set(float64(at.Unix()))
	if bytes >= 0 {
		lastBytes.Set(float64(bytes))
	}
}
