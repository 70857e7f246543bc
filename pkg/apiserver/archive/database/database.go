// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package database opens the database of runs while the server runs, and removes what is too old. The server starts and serves without the
// database: until it is open, all requests for runs end with an error.
package database

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	archivestore "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Open opens a store.
type Open func(context.Context) (archivestore.Store, error)

// Database is a store that is opened in the background.
type Database struct {
	open   Open
	limits Limits
	clock  clock.WithTicker

	mu     sync.RWMutex
	store  archivestore.Store
	closed bool
	usage  archivestore.Usage
}

var _ archivestore.Store = &Database{}

// New returns a database that is not open yet. Run opens it.
func New(open Open, limits Limits, clock clock.WithTicker) *Database {
	return &Database{open: open, limits: limits, clock: clock}
}

// errNotOpen is returned until the database is open.
var errNotOpen = errors.New("the archive database is not open")

const (
	minOpenDelay = time.Second
	maxOpenDelay = time.Minute
)

// Run opens the database, however long that takes, and then removes what is too old until the context ends.
func (d *Database) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	delay := wait.Backoff{Duration: minOpenDelay, Factor: 2, Jitter: 0.2, Steps: 32, Cap: maxOpenDelay}
	for {
		err := d.tryOpen(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		logger.Error(err, "Cannot open the archive database; runs that end are kept in the outbox")
		select {
		case <-ctx.Done():
			return
		case <-d.clock.After(min(delay.Step(), maxOpenDelay)):
		}
	}
	logger.Info("Opened the archive database")
	d.retain(ctx)
}

func (d *Database) tryOpen(ctx context.Context) error {
	store, err := d.open(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errors.Join(errNotOpen, store.Close())
	}
	d.store = store
	return nil
}

// opened calls a function with the store, which is not closed before the function ends.
func (d *Database) opened(fn func(archivestore.Store) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.store == nil {
		return errNotOpen
	}
	return fn(d.store)
}

// Put implements archive.Store.
func (d *Database) Put(ctx context.Context, runs []archive.Run) error {
	return d.opened(func(s archivestore.Store) error { return s.Put(ctx, runs) })
}

// Missing implements archive.Store.
func (d *Database) Missing(ctx context.Context, runs []archivestore.Ended) (missing []archivestore.Key, err error) {
	err = d.opened(func(s archivestore.Store) error {
		missing, err = s.Missing(ctx, runs)
		return err
	})
	return missing, err
}

// Get implements archive.Store.
func (d *Database) Get(ctx context.Context, namespace, name string) (run *archive.Run, err error) {
	err = d.opened(func(s archivestore.Store) error {
		run, err = s.Get(ctx, namespace, name)
		return err
	})
	return run, err
}

// List implements archive.Store.
func (d *Database) List(ctx context.Context, query archivestore.Query) (page *archivestore.Page, err error) {
	err = d.opened(func(s archivestore.Store) error {
		page, err = s.List(ctx, query)
		return err
	})
	return page, err
}

// Delete implements archive.Store.
func (d *Database) Delete(ctx context.Context, namespace, name string, uid types.UID) (run *archive.Run, err error) {
	err = d.opened(func(s archivestore.Store) error {
		run, err = s.Delete(ctx, namespace, name, uid)
		return err
	})
	return run, err
}

// Prune implements archive.Store.
func (d *Database) Prune(ctx context.Context, before time.Time, maxBytes int64, batch int) (removed int, err error) {
	err = d.opened(func(s archivestore.Store) error {
		removed, err = s.Prune(ctx, before, maxBytes, batch)
		return err
	})
	return removed, err
}

// Usage implements archive.Store.
func (d *Database) Usage(ctx context.Context) (usage archivestore.Usage, err error) {
	err = d.opened(func(s archivestore.Store) error {
		usage, err = s.Usage(ctx)
		return err
	})
	return usage, err
}

// Close closes the store, if it is open. It is not opened again.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	store := d.store
	d.store, d.closed = nil, true
	if store == nil {
		return nil
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("closing the archive database: %w", err)
	}
	return nil
}
