// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// dialect is what differs between the databases.
type dialect struct {
	// types replaces the types of columns in statements that create tables.
	types *strings.Replacer
	// numbered says that parameters are $1, $2 and not ?.
	numbered bool
	// lock waits until no other transaction of any server writes. Empty if the begin of a transaction does that.
	lock string
	// encoding returns the encoding of texts. Empty if there is only one.
	encoding string
	// hasTables counts the tables with the name archive_meta.
	hasTables string
	// size returns how many bytes the database takes.
	size string
	// used returns how many of these bytes hold something, so that deleting runs lowers it.
	used string
	// reclaim gives free space back after runs were deleted. nil if the database does that on its own.
	reclaim func(ctx context.Context, db *sql.DB) error
}

// bind returns the statement with the parameters of the dialect. Statements have no question marks but their parameters.
func (d *dialect) bind(statement string) string {
	if !d.numbered {
		return statement
	}
	var b strings.Builder
	n := 0
	for _, r := range statement {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// queryer is what a database and a transaction share.
type queryer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// session runs statements within a database or a transaction.
type session struct {
	q queryer
	d *dialect
}

func (s session) exec(ctx context.Context, statement string, args ...any) error {
	_, err := s.q.ExecContext(ctx, s.d.bind(statement), args...)
	return err
}

func (s session) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return s.q.QueryRowContext(ctx, s.d.bind(statement), args...)
}

// each calls the function for every row of the answer.
func (s session) each(ctx context.Context, scan func(scan func(...any) error) error, statement string, args ...any) error {
	rows, err := s.q.QueryContext(ctx, s.d.bind(statement), args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// marks returns n parameters, separated by commas.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
