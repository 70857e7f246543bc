// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

const (
	privateDirectory = 0o700
	privateFile      = 0o600
	// journalLimit is the size to which the write-ahead log shrinks after a checkpoint.
	journalLimit = 64 << 20
	// cacheKiB is how much memory each connection may take for pages.
	cacheKiB = 8 << 10
	// reclaimPages is how many pages are given back at a time.
	reclaimPages = 2000
)

// pagesInUse returns the size of the database without its free pages, which will be given back or used again.
const pagesInUse = `SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`

func sqliteDialect() *dialect {
	return &dialect{
		types: strings.NewReplacer("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{blob}", "BLOB", "{int}", "INTEGER",
			"{clustered}", "WITHOUT ROWID"),
		hasTables: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'archive_meta'`,
		size:      pagesInUse,
		used:      pagesInUse,
		reclaim:   reclaimSQLite,
	}
}

// newSQLite returns a store in a file. Only the user of the server can read it.
func newSQLite(config Config, path string) (*Store, error) {
	empty, err := privately(path)
	if err != nil {
		return nil, fmt.Errorf("creating the archive database: %w", err)
	}
	// Transactions that write begin by taking the lock. Full synchronization makes a commit survive a crash of the machine.
	parameters := url.Values{
		"_busy_timeout": {strconv.FormatInt(config.Timeout.Milliseconds(), 10)},
		"_journal_mode": {"wal"},
		"_synchronous":  {"full"},
		"_pragma":       {fmt.Sprintf("journal_size_limit(%d)", journalLimit), fmt.Sprintf("cache_size(-%d)", cacheKiB)},
		"_txlock":       {"immediate"},
		"_dqs":          {"0"},
		"_defensive":    {"1"},
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: parameters.Encode()}
	if empty {
		if err := format(name, parameters); err != nil {
			return nil, fmt.Errorf("creating the archive database: %w", err)
		}
	}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("opening the archive database: %w", err)
	}
	return newStore(db, sqliteDialect(), config), nil
}

// format makes a database whose free pages can be given back of an empty file. This must be chosen before the first page is written, and
// later connections must not choose it again, because that takes the lock of writers.
func format(name url.URL, parameters url.Values) error {
	parameters = maps.Clone(parameters)
	parameters.Set("_auto_vacuum", "incremental")
	name.RawQuery = parameters.Encode()
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	return errors.Join(db.Ping(), db.Close())
}

// privately creates the directory and the file if they do not exist, and takes the rights of others from the file. SQLite gives the files
// that it creates beside it the same rights. It returns whether the file is empty.
func privately(path string) (bool, error) {
	if err := os.MkdirAll(filepath.Dir(path), privateDirectory); err != nil {
		return false, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateFile)
	if err != nil {
		return false, err
	}
	info, err := file.Stat()
	if err != nil {
		return false, errors.Join(err, file.Close())
	}
	switch {
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s must be a regular file", path)
	case info.Mode().Perm()&^fs.FileMode(privateFile) != 0:
		err = file.Chmod(privateFile)
	}
	return info.Size() == 0, errors.Join(err, file.Close())
}

// reclaimSQLite gives free pages back to the file system, some at a time so that writers wait for a short time only.
func reclaimSQLite(ctx context.Context, db *sql.DB) error {
	s := session{q: db, d: sqliteDialect()}
	for {
		var free int64
		if err := s.row(ctx, `SELECT freelist_count FROM pragma_freelist_count`).Scan(&free); err != nil || free == 0 {
			return err
		}
		// The statement works while its rows are read.
		err := s.each(ctx, func(func(...any) error) error { return nil }, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, reclaimPages))
		if err != nil {
			return err
		}
		var left int64
		if err := s.row(ctx, `SELECT freelist_count FROM pragma_freelist_count`).Scan(&left); err != nil {
			return err
		}
		if left >= free || left < reclaimPages {
			return nil
		}
	}
}
