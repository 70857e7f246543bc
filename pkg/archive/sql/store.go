// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

var _ archive.Store = &Store{}

// Store keeps runs in a database.
type Store struct {
	db       *sql.DB
	dialect  *dialect
	timeout  time.Duration
	prepared atomic.Bool
	// writer is taken by the transaction of this server that writes, so that the others do not take connections from readers while they wait.
	writer chan struct{}
}

func newStore(db *sql.DB, d *dialect, config Config) *Store {
	db.SetMaxOpenConns(config.MaxConnections)
	db.SetMaxIdleConns(config.MaxConnections)
	return &Store{db: db, dialect: d, timeout: config.Timeout, writer: make(chan struct{}, 1)}
}

// Close implements archive.Store.
func (s *Store) Close() error { return s.db.Close() }

// Usage implements archive.Store.
func (s *Store) Usage(ctx context.Context) (archive.Usage, error) {
	var usage archive.Usage
	err := s.read(ctx, func(ctx context.Context, t session) error {
		var oldest sql.NullInt64
		if err := t.row(ctx, `SELECT COUNT(*) FROM archive_runs`).Scan(&usage.Runs); err != nil {
			return err
		}
		if err := t.row(ctx, `SELECT MIN(ended) FROM archive_runs`).Scan(&oldest); err != nil {
			return err
		}
		if oldest.Valid {
			usage.Oldest = time.UnixMicro(oldest.Int64).UTC()
		}
		return t.row(ctx, t.d.size).Scan(&usage.Bytes)
	})
	if err != nil {
		return archive.Usage{}, fmt.Errorf("measuring the archive: %w", err)
	}
	return usage, nil
}

// read calls the function within a transaction that sees one state of the database.
func (s *Store) read(ctx context.Context, f func(context.Context, session) error) error {
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return f(ctx, session{tx, s.dialect})
}

// write calls the function within a transaction while no other one writes.
func (s *Store) write(ctx context.Context, f func(context.Context, session) error) error {
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.locked(ctx, f)
}

func (s *Store) locked(ctx context.Context, f func(context.Context, session) error) error {
	select {
	case s.writer <- struct{}{}:
		defer func() { <-s.writer }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another transaction: %w", ctx.Err())
	}
	// Each statement must see what others have committed while this transaction waited for the lock.
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	t := session{tx, s.dialect}
	if s.dialect.lock != "" {
		err = t.exec(ctx, s.dialect.lock)
	}
	if err == nil {
		err = f(ctx, t)
	}
	if err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			return errors.Join(err, rollback)
		}
		return err
	}
	return tx.Commit()
}

// meta returns one of the numbers that the database has once.
func (s session) meta(ctx context.Context, name string) (int64, error) {
	var value int64
	err := s.row(ctx, `SELECT value FROM archive_meta WHERE name = ?`, name).Scan(&value)
	return value, err
}

// grow changes the count of bytes.
func (s session) grow(ctx context.Context, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return s.exec(ctx, `UPDATE archive_meta SET value = value + ? WHERE name = 'bytes'`, bytes)
}

// raise sets the floor, unless it is higher.
func (s session) raise(ctx context.Context, ended int64) error {
	return s.exec(ctx, `UPDATE archive_meta SET value = ? WHERE name = 'floor' AND value < ?`, ended, ended)
}
