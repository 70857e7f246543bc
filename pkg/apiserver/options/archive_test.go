// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestArchiveFlags checks what the flags of the archive accept, and what a user reads about the rest.
func TestArchiveFlags(t *testing.T) {
	const embedded = "--data-dir=/d"
	for name, c := range map[string]struct {
		args []string
		want string // a part of the error; empty if the flags are right
	}{
		"off by default":                {args: []string{embedded}},
		"a file":                        {args: []string{embedded, "--archive-database=sqlite"}},
		"no limits":                     {args: []string{embedded, "--archive-database=sqlite", "--archive-retention=0", "--archive-retention-bytes=0"}},
		"weeks":                         {args: []string{embedded, "--archive-database=sqlite", "--archive-retention=26w"}},
		"PostgreSQL":                    {args: []string{"--archive-database=postgres://jobset@db:5432/runs?sslmode=verify-full", "--archive-database-password-file=/p"}},
		"PostgreSQL by its other name":  {args: []string{embedded, "--archive-database=postgresql://jobset@db/runs"}},
		"keys that are left out":        {args: []string{embedded, "--archive-omitted-keys=annotation:example.com/a,field:command", "--archive-allowed-env=NCCL_*"}},
		"a file with an external etcd":  {args: []string{"--archive-database=sqlite"}, want: "--archive-database: must be the URL of a PostgreSQL database, or none, for several servers"},
		"a file with several members":   {args: []string{embedded, "--embedded-etcd-members=a,b,c", "--archive-database=sqlite"}, want: "a file belongs to one server"},
		"an unknown database":           {args: []string{embedded, "--archive-database=mysql://u:secret@db/runs"}, want: "--archive-database: must be none, sqlite, or a URL such as postgres://user@host:5432/database"},
		"no host":                       {args: []string{embedded, "--archive-database=postgres:///runs"}, want: "--archive-database: must be none, sqlite"},
		"a password in the URL":         {args: []string{embedded, "--archive-database=postgres://u:secret@db/runs"}, want: "must not have a password, which others could see: use --archive-database-password-file"},
		"a password among parameters":   {args: []string{embedded, "--archive-database=postgres://u@db/runs?password=secret"}, want: "must not have a password"},
		"a password for a file":         {args: []string{embedded, "--archive-database=sqlite", "--archive-database-password-file=/p"}, want: "--archive-database-password-file: must not be set without a PostgreSQL database"},
		"too short a retention":         {args: []string{embedded, "--archive-retention=5m"}, want: "--archive-retention: must be at least 1h0m0s, or 0 to keep runs for ever, not 5m0s"},
		"too small a size":              {args: []string{embedded, "--archive-retention-bytes=1Ki"}, want: "--archive-retention-bytes: must be at least 16Mi, or 0 for no limit, not 1Ki"},
		"an unknown kind of key":        {args: []string{embedded, "--archive-omitted-keys=secret:a"}, want: "--archive-omitted-keys: "},
		"a retention that is no number": {args: []string{embedded, "--archive-retention=long"}, want: "invalid argument \"long\" for \"--archive-retention\""},
	} {
		t.Run(name, func(t *testing.T) {
			archive, storage := newArchiveOptions(), NewStorageOptions()
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			archive.addFlags(fs)
			fs.StringVar(&storage.DataDir, "data-dir", "", "")
			fs.StringSliceVar(&storage.Members, membersFlag, nil, "")
			err := fs.Parse(c.args)
			if err == nil {
				err = archive.validate(storage)
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got the error %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got the error %v, want one with %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "secret@"):
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}
