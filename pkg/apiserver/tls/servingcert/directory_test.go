// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// read returns the content of the files of a directory by their names.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestEnsure(t *testing.T) {
	const year = 365 * 24 * time.Hour
	cases := map[string]struct {
		// change happens between two calls.
		change func(t *testing.T, d *Directory)
		// want are the files that differ after the second call.
		want []string
	}{
		"nothing changed":                            {change: func(*testing.T, *Directory) {}},
		"the pair is young enough":                   {change: func(_ *testing.T, d *Directory) { d.now = later(300 * 24 * time.Hour) }},
		"the pair ends within 30 days":               {change: func(_ *testing.T, d *Directory) { d.now = later(340 * 24 * time.Hour) }, want: []string{"tls.crt", "tls.key"}},
		"the authority would end before a new pair":  {change: func(_ *testing.T, d *Directory) { d.now = later(9*year + time.Hour) }, want: []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}},
		"another name is wanted":                     {change: func(_ *testing.T, d *Directory) { d.names = append(d.names, "other.example.com") }, want: []string{"tls.crt", "tls.key"}},
		"a name is no longer wanted":                 {change: func(_ *testing.T, d *Directory) { d.names = d.names[:1] }},
		"the key is gone":                            {change: func(t *testing.T, d *Directory) { remove(t, d.KeyFile()) }, want: []string{"tls.crt", "tls.key"}},
		"the pair is garbage":                        {change: func(t *testing.T, d *Directory) { write(t, d.CertFile(), "garbage") }, want: []string{"tls.crt", "tls.key"}},
		"the key of the authority is kept elsewhere": {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()) }, want: []string{"ca.key"}},
		"the first start ended after the first file": {change: func(t *testing.T, d *Directory) {
			for _, file := range []string{d.CAFile(), d.CertFile(), d.KeyFile()} {
				remove(t, file)
			}
		}, want: []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}},
		"everything is gone": {change: func(t *testing.T, d *Directory) { remove(t, d.path) }, want: []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(filepath.Join(t.TempDir(), "certs"), []string{"localhost", "127.0.0.1"})
			if err := d.Ensure(); err != nil {
				t.Fatal(err)
			}
			before := read(t, d.path)
			c.change(t, d)
			if err := d.Ensure(); err != nil {
				t.Fatal(err)
			}
			after := read(t, d.path)
			var got []string
			for _, file := range []string{"ca.crt", "ca.key", "tls.crt", "tls.key"} {
				if before[file] != after[file] {
					got = append(got, file)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("replaced files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncompleteAuthorityIsNotReplaced removes a part of the authority and wants no file to change, whether or not a new
// pair is due.
func TestIncompleteAuthorityIsNotReplaced(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		change func(t *testing.T, d *Directory)
		// wantMissing is the file that the error names; none when no new pair is due.
		wantMissing string
		wantUsable  bool
	}{
		"without the key, and the pair is good":          {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()) }, wantUsable: true},
		"without the key, and the pair ends in 25 days":  {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()); d.now = later(340 * day) }, wantMissing: "ca.key", wantUsable: true},
		"without the key, and the pair has ended":        {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()); d.now = later(366 * day) }, wantMissing: "ca.key"},
		"without the key, and another name is wanted":    {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()); d.names = append(d.names, "other") }, wantMissing: "ca.key"},
		"without the key, and the pair is gone":          {change: func(t *testing.T, d *Directory) { remove(t, d.caKeyFile()); remove(t, d.CertFile()) }, wantMissing: "ca.key"},
		"without the certificate, and the pair is there": {change: func(t *testing.T, d *Directory) { remove(t, d.CAFile()) }, wantMissing: "ca.crt", wantUsable: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(filepath.Join(t.TempDir(), "certs"), []string{"localhost"})
			if err := d.Ensure(); err != nil {
				t.Fatal(err)
			}
			c.change(t, d)
			before := read(t, d.path)
			err := d.Ensure()
			if diff := cmp.Diff(before, read(t, d.path)); diff != "" {
				t.Errorf("files were replaced (-before +after):\n%s", diff)
			}
			if want := filepath.Join(d.path, c.wantMissing) + " is missing"; (err == nil) != (c.wantMissing == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, missing is %q", err, c.wantMissing)
			}
			if usable := d.Usable(); usable != c.wantUsable {
				t.Errorf("usable: %t", usable)
			}
		})
	}
}

func later(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPairIsUsable(t *testing.T) {
	d := NewDirectory(t.TempDir(), []string{"localhost", "127.0.0.1", "::1", "a.b.svc"})
	if err := d.Ensure(); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(d.CertFile(), d.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(d.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "a.b.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("for %s: %v", name, err)
		}
	}
	for file, want := range map[string]os.FileMode{d.KeyFile(): 0o600, d.caKeyFile(): 0o600, d.CAFile(): 0o644, d.CertFile(): 0o644} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("mode of %s is %o, not %o", file, info.Mode().Perm(), want)
		}
	}
}

func TestDamagedAuthorityIsNotReplaced(t *testing.T) {
	d := NewDirectory(t.TempDir(), []string{"localhost"})
	if err := d.Ensure(); err != nil {
		t.Fatal(err)
	}
	write(t, d.CAFile(), "garbage")
	err := d.Ensure()
	if err == nil || !strings.Contains(err.Error(), "repair or remove "+d.CAFile()) {
		t.Errorf("error is %v", err)
	}
}
