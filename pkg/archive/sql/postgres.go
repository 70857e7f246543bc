// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// writersLock is the number of the advisory lock of transactions that write.
	writersLock = 0x6a6f6273_65740001
	// maxPassword is how much of the password file is read.
	maxPassword = 4096
)

// postgresTables are the tables whose size counts, as a list of values.
const postgresTables = `(VALUES ('archive_runs'), ('archive_details'), ('archive_terms'), ('archive_tombstones'), ` +
	`('archive_meta')) AS t (name)`

func postgresDialect() *dialect {
	return &dialect{
		types: strings.NewReplacer("{id}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{blob}", "BYTEA", "{int}", "BIGINT",
			"{clustered}", ""),
		numbered:  true,
		lock:      fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, int64(writersLock)),
		encoding:  `SELECT current_setting('server_encoding')`,
		hasTables: `SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('archive_meta')`,
		size:      `SELECT COALESCE(SUM(pg_total_relation_size(to_regclass(t.name))), 0)::bigint FROM ` + postgresTables,
		// Tables do not become smaller when rows are deleted: the space is used again. So what is used is counted with the runs.
		used: `SELECT value FROM archive_meta WHERE name = 'bytes'`,
	}
}

// newPostgres returns a store in PostgreSQL. It does not connect.
func newPostgres(config Config) (*Store, error) {
	parsed, err := pgx.ParseConfig(config.URL)
	if err != nil {
		// The error repeats parts of the URL, which may be those of a password.
		return nil, errors.New("the URL of the archive database must have the form postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full; " +
			"its host, port or parameters cannot be parsed, or a certificate that it names cannot be read")
	}
	parsed.ConnectTimeout = config.ConnectTimeout
	// The server ends what this program has given up, and what a program left behind that has lost its connection.
	milliseconds := strconv.FormatInt(config.Timeout.Milliseconds(), 10)
	parsed.RuntimeParams["statement_timeout"] = milliseconds
	parsed.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = "jobset-apiserver"
	}
	options := []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(durable)}
	if config.PasswordFile != "" {
		options = append(options, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
			var err error
			c.Password, err = readPassword(config.PasswordFile)
			return err
		}))
	}
	db := stdlib.OpenDB(*parsed, options...)
	db.SetConnMaxLifetime(config.MaxLifetime)
	return newStore(db, postgresDialect(), config), nil
}

// durable makes commits wait for the disk where an administrator has turned that off for everybody, because what Put has acknowledged is
// kept nowhere else.
func durable(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
	return err
}

// readPassword returns the first line of the file.
func readPassword(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the password of the archive database: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("reading the password of the archive database: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || len(line) > maxPassword {
		return "", fmt.Errorf("the first line of %s must be a password of 1 to %d bytes", path, maxPassword)
	}
	return line, nil
}
