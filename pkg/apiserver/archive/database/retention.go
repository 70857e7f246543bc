// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	archivestore "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Limits say which runs are kept.
type Limits struct {
	// Age is for how long runs are kept after their end; 0 keeps them for ever.
	Age time.Duration
	// Bytes is the size of the database above which the oldest runs are removed; 0 is no limit.
	Bytes int64
}

const (
	// retainEvery is the time between two looks at what is too old, of which each server has its own.
	retainEvery = 10 * time.Minute
	retainShare = 0.2
	// batch is how many runs are removed at once: others can write in between.
	batch = 500
	// pause is the time between two batches.
	pause = 100 * time.Millisecond
)

// retain removes what is too old, until the context ends.
func (d *Database) retain(ctx context.Context) {
	for {
		if err := d.prune(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot remove old runs from the archive")
		}
		select {
		case <-ctx.Done():
			return
		case <-d.clock.After(wait.Jitter(retainEvery, retainShare)):
		}
	}
}

// prune removes all that is too old, in batches, and notes how much is left.
func (d *Database) prune(ctx context.Context) error {
	for d.limits != (Limits{}) {
		var before time.Time
		if d.limits.Age > 0 {
			before = d.clock.Now().Add(-d.limits.Age)
		}
		removed, err := d.Prune(ctx, before, d.limits.Bytes, batch)
		if err != nil {
			return err
		}
		if removed < batch {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.clock.After(pause):
		}
	}
	usage, err := d.Usage(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usage = usage
	return nil
}

const subsystem = "jobset_apiserver_archive"

// Register publishes how much the database has. It is called once.
func (d *Database) Register() { d.register(legacyregistry.RawMustRegister) }

func (d *Database) register(register func(...prometheus.Collector)) {
	gauge := func(name, help string, value func() float64) {
		opts := &metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
		register(metrics.NewGaugeFunc(opts, value))
	}
	gauge("open", "1 if the archive database is open, otherwise 0.", func() float64 {
		d.mu.RLock()
		defer d.mu.RUnlock()
		if d.store == nil {
			return 0
		}
		return 1
	})
	gauge("runs", "Runs in the archive, as of the last look for old ones.", func() float64 { return float64(d.last().Runs) })
	gauge("bytes", "Size of the archive database in bytes, as of the last look for old runs.",
		func() float64 { return float64(d.last().Bytes) })
}

// last returns how much the database had last.
func (d *Database) last() archivestore.Usage {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.usage
}
