// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"fmt"
)

// migrations are the statements that lead from one schema to the next. Those that a release has had never change. Until all servers are
// updated, old and new ones use the same tables, so a migration only adds.
var migrations = [][]string{
	{
		`CREATE TABLE archive_meta (name TEXT PRIMARY KEY, value {int} NOT NULL)`,
		`INSERT INTO archive_meta (name, value) VALUES ('schema', 1), ('floor', -9223372036854775807), ('bytes', 0)`,
		// Times are microseconds since 1970. A run that began after its end, because clocks differ, counts as begun at its end.
		`CREATE TABLE archive_runs (
			id {id},
			run_key {blob} NOT NULL UNIQUE,
			namespace TEXT NOT NULL,
			name TEXT NOT NULL,
			uid TEXT NOT NULL,
			api_version TEXT NOT NULL,
			kind TEXT NOT NULL,
			object TEXT NOT NULL,
			object_uid TEXT NOT NULL,
			execution {int} NOT NULL,
			state TEXT NOT NULL,
			username TEXT NOT NULL,
			queue TEXT NOT NULL,
			began {int} NOT NULL,
			ended {int} NOT NULL,
			bytes {int} NOT NULL,
			record {blob} NOT NULL)`,
		`CREATE INDEX archive_runs_ended ON archive_runs (ended, id)`,
		// The terms of a run are kept with it, so that exactly those are removed whose rows were added.
		`CREATE TABLE archive_details (run {int} NOT NULL PRIMARY KEY, terms {blob} NOT NULL, details {blob})`,
		`CREATE TABLE archive_terms (
			term {blob} NOT NULL, ended {int} NOT NULL, run {int} NOT NULL, PRIMARY KEY (term, ended, run)) {clustered}`,
		`CREATE TABLE archive_tombstones (run_key {blob} NOT NULL PRIMARY KEY, ended {int} NOT NULL) {clustered}`,
		`CREATE INDEX archive_tombstones_ended ON archive_tombstones (ended)`,
	},
}

// Prepare creates or updates the tables, if no other server has. Every operation does this first, so calling it is only needed to know
// about an error early.
func (s *Store) Prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	// Most often there is nothing to do, and then the lock is not needed.
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	version, err := schema(ctx, session{s.db, s.dialect})
	if err == nil && version < len(migrations) {
		err = s.locked(ctx, migrate)
	}
	if err != nil {
		return fmt.Errorf("preparing the archive database: %w", err)
	}
	s.prepared.Store(true)
	return nil
}

// schema returns the number of the schema of the database. 0 is an empty database.
func schema(ctx context.Context, t session) (int, error) {
	if t.d.encoding != "" {
		var encoding string
		if err := t.row(ctx, t.d.encoding).Scan(&encoding); err != nil {
			return 0, err
		}
		if encoding != "UTF8" {
			return 0, fmt.Errorf("the database must have the encoding UTF8, and has %s: create one WITH ENCODING 'UTF8' TEMPLATE template0",
				encoding)
		}
	}
	var tables, version int
	if err := t.row(ctx, t.d.hasTables).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	if err := t.row(ctx, `SELECT value FROM archive_meta WHERE name = 'schema'`).Scan(&version); err != nil {
		return 0, err
	}
	if version > len(migrations) {
		return 0, fmt.Errorf("%w: its schema must be at most %d, and is %d; update this server, or use another database",
			ErrNewerSchema, len(migrations), version)
	}
	return version, nil
}

func migrate(ctx context.Context, t session) error {
	version, err := schema(ctx, t)
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		for _, statement := range migrations[version] {
			if err := t.exec(ctx, t.d.types.Replace(statement)); err != nil {
				return fmt.Errorf("updating the schema to %d: %w", version+1, err)
			}
		}
		if err := t.exec(ctx, `UPDATE archive_meta SET value = ? WHERE name = 'schema'`, version+1); err != nil {
			return err
		}
	}
	return nil
}
