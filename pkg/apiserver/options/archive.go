// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/redact"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// The values of --archive-database that are not a URL.
const (
	// ArchiveNone keeps no runs.
	ArchiveNone = "none"
	// ArchiveSQLite keeps runs in a file below --data-dir.
	ArchiveSQLite = "sqlite"
)

const (
	archiveFlag             = "archive-database"
	archiveRetentionFlag    = "archive-retention"
	archiveBytesFlag        = "archive-retention-bytes"
	minArchiveRetention     = time.Hour
	defaultArchiveRetention = 365 * 24 * time.Hour
)

var (
	minArchiveBytes     = resource.MustParse("16Mi")
	defaultArchiveBytes = resource.MustParse("2Gi")
)

// ArchiveOptions say where runs that have ended are kept, for how long, and what is kept of them.
type ArchiveOptions struct {
	// Database is ArchiveNone, ArchiveSQLite, or the URL of a PostgreSQL database, without a password.
	Database string
	// PasswordFile has the password for PostgreSQL. It is read for each new connection; empty for none.
	PasswordFile string
	// Retention is for how long runs are kept after their end; 0 keeps them for ever.
	Retention time.Duration
	// RetentionBytes is the size of the database above which the oldest runs are removed; 0 is no limit.
	RetentionBytes resource.QuantityValue
	// AllowedEnv are the names of environment variables whose values are kept. The values of all others are replaced by a hash.
	AllowedEnv []string
	// OmittedKeys are what is left out of runs, as kind:name.
	OmittedKeys []string
}

func newArchiveOptions() ArchiveOptions {
	return ArchiveOptions{Database: ArchiveNone, Retention: defaultArchiveRetention,
		RetentionBytes: resource.QuantityValue{Quantity: defaultArchiveBytes.DeepCopy()}}
}

func (a *ArchiveOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.Database, archiveFlag, a.Database, "Alpha: where to keep the runs of JobSets, SequentialJobs and LeaderWorkerSets that "+
		"have ended: "+ArchiveNone+", "+ArchiveSQLite+" for a file in the directory \"archive\" below --data-dir, or the URL of a PostgreSQL "+
		"database (postgres://user@host:port/database?sslmode=verify-full&sslrootcert=file). Several servers need PostgreSQL.")
	fs.StringVar(&a.PasswordFile, "archive-database-password-file", a.PasswordFile, "File with the password for the PostgreSQL database of "+
		"--"+archiveFlag+". Read again for each new connection.")
	fs.Var((*days)(&a.Retention), archiveRetentionFlag, "How long to keep a run after its end, such as 365d, 26w or 12h. 0 keeps runs for "+
		"ever.")
	fs.Var(&a.RetentionBytes, archiveBytesFlag, "Size of the database of runs above which the oldest runs are removed. 0 is no limit.")
	fs.StringSliceVar(&a.AllowedEnv, "archive-allowed-env", a.AllowedEnv, "Names of environment variables whose values are kept in runs "+
		"(comma separated). A name may end with *. The values of all other variables are replaced by a hash.")
	fs.StringSliceVar(&a.OmittedKeys, "archive-omitted-keys", a.OmittedKeys, "What to leave out of runs (comma separated): annotation:KEY, "+
		"label:KEY, env:NAME, or field:NAME for all fields with the name.")
}

// On returns whether runs are kept.
func (a *ArchiveOptions) On() bool { return a.Database != ArchiveNone }

// File returns the file of the SQLite database; empty if runs are not kept in one.
func (a *ArchiveOptions) File(dataDir string) string {
	if a.Database != ArchiveSQLite {
		return ""
	}
	return filepath.Join(dataDir, "archive", "archive.db")
}

// Redaction returns what is kept of a run.
func (a *ArchiveOptions) Redaction() redact.Options {
	return redact.Options{AllowedEnv: a.AllowedEnv, OmittedKeys: a.OmittedKeys}
}

func (a *ArchiveOptions) validate(storage *StorageOptions) error {
	if err := a.validateDatabase(storage); err != nil {
		return err
	}
	switch bytes := &a.RetentionBytes; {
	case a.Retention != 0 && a.Retention < minArchiveRetention:
		return flagerror.New(archiveRetentionFlag, "must be at least %s, or 0 to keep runs for ever, not %s", minArchiveRetention, a.Retention)
	case !bytes.IsZero() && bytes.Cmp(minArchiveBytes) < 0:
		return flagerror.New(archiveBytesFlag, "must be at least %s, or 0 for no limit, not %s", &minArchiveBytes, bytes)
	}
	_, err := redact.New(a.Redaction())
	return flagerror.Wrap("archive-omitted-keys", err, "correct --archive-omitted-keys or --archive-allowed-env")
}

func (a *ArchiveOptions) validateDatabase(storage *StorageOptions) error {
	switch a.Database {
	case ArchiveNone:
	case ArchiveSQLite:
		if storage.DataDir == "" || len(storage.Members) > 0 {
			return flagerror.New(archiveFlag, "must be the URL of a PostgreSQL database, or %s, for several servers and for an external etcd: a "+
				"file belongs to one server with the embedded etcd", ArchiveNone)
		}
	default:
		return a.validateURL()
	}
	if a.PasswordFile != "" {
		return flagerror.New("archive-database-password-file", "must not be set without a PostgreSQL database in --%s", archiveFlag)
	}
	return nil
}

// validateURL checks the URL of a PostgreSQL database. It may have a password, so that errors do not show it.
func (a *ArchiveOptions) validateURL() error {
	address, err := url.Parse(a.Database)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" || address.Host == "" {
		return flagerror.New(archiveFlag, "must be %s, %s, or a URL such as postgres://user@host:5432/database", ArchiveNone, ArchiveSQLite)
	}
	if _, set := address.User.Password(); set || address.Query().Has("password") {
		return flagerror.New(archiveFlag, "must not have a password, which others could see: use --archive-database-password-file")
	}
	return nil
}

// days is a duration that may be in days, weeks and years, as in 365d.
type days time.Duration

// Set implements pflag.Value.
func (d *days) Set(value string) error { return (*model.Duration)(d).Set(value) }

// String implements pflag.Value.
func (d *days) String() string { return model.Duration(*d).String() }

// Type implements pflag.Value.
func (d *days) Type() string { return "duration" }
