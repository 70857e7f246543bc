// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Config says where runs are kept.
type Config struct {
	// URL is the absolute path of an SQLite file, which may begin with "sqlite:", or the URL of a PostgreSQL database, which begins with
	// "postgres://" or "postgresql://".
	URL string
	// PasswordFile is a file with the password of the PostgreSQL user. It is read for each new connection, so a password can be replaced
	// while the server runs. Empty for none.
	PasswordFile string
	// MaxConnections is the highest number of connections. 0 means 4.
	MaxConnections int
	// Timeout is how long one operation may take, including the wait for a lock. 0 means 10 seconds.
	Timeout time.Duration
	// ConnectTimeout is how long connecting to PostgreSQL may take. 0 means 5 seconds.
	ConnectTimeout time.Duration
	// MaxLifetime is how long a connection to PostgreSQL is used. 0 means 30 minutes.
	MaxLifetime time.Duration
}

const (
	defaultConnections    = 4
	maxConnections        = 100
	defaultTimeout        = 10 * time.Second
	defaultConnectTimeout = 5 * time.Second
	defaultLifetime       = 30 * time.Minute
)

// ErrNewerSchema is returned for a database that a newer version of the server has changed.
var ErrNewerSchema = errors.New("the archive database is newer than this server")

// New returns a store of runs. It checks the configuration only: the first operation that reaches the database creates or updates the
// tables. So a server can start while its archive database is away.
func New(config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if path, ok := config.file(); ok {
		return newSQLite(config, path)
	}
	return newPostgres(config)
}

// Open returns a store of runs whose tables are ready. It returns an error that wraps ErrNewerSchema if a newer version has changed them.
func Open(ctx context.Context, config Config) (archive.Store, error) {
	s, err := New(config)
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// complete returns the configuration with its defaults. Its errors never contain the URL, which may have a password.
func (c Config) complete() (Config, error) {
	for _, d := range []struct {
		name    string
		value   *time.Duration
		initial time.Duration
	}{
		{"timeout", &c.Timeout, defaultTimeout},
		{"connect timeout", &c.ConnectTimeout, defaultConnectTimeout},
		{"lifetime of a connection", &c.MaxLifetime, defaultLifetime},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("the %s of the archive database must not be negative, and is %v", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.initial
		}
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultConnections
	}
	if c.MaxConnections < 0 || c.MaxConnections > maxConnections {
		return c, fmt.Errorf("the number of connections to the archive database must be from 1 to %d, and is %d",
			maxConnections, c.MaxConnections)
	}
	return c, c.checkAddress()
}

// checkAddress checks where the database is.
func (c Config) checkAddress() error {
	path, ok := c.file()
	switch {
	case !ok && !strings.HasPrefix(c.URL, "postgres://") && !strings.HasPrefix(c.URL, "postgresql://"):
		return errors.New("the archive database must be the absolute path of a file, or a URL that begins with postgres://")
	case ok && !filepath.IsAbs(path):
		return errors.New("the file of the archive database must have an absolute path")
	case ok && strings.ContainsRune(path, 0):
		return errors.New("the path of the archive database must not contain NUL")
	case ok && c.PasswordFile != "":
		return errors.New("a password file for the archive database is allowed for PostgreSQL only")
	}
	return nil
}

// file returns the path of the SQLite file, and false for PostgreSQL.
func (c Config) file() (string, bool) {
	if path, ok := strings.CutPrefix(c.URL, "sqlite:"); ok {
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			path = rest
		}
		return path, true
	}
	return c.URL, strings.HasPrefix(c.URL, "/")
}
