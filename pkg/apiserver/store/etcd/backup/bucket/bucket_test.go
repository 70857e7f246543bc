// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/objectstorage"
)

// service is an object storage behind a proxy with TLS, which may refuse requests.
type service struct {
	*httptest.Server
	// hook returns whether it has answered a request.
	hook    func(http.ResponseWriter, *http.Request) bool
	options bucket.Options
}

// secret writes credentials as a mounted Secret has them.
func secret(t *testing.T, credentials map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range credentials {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newService(t *testing.T) *service {
	t.Helper()
	behind, err := url.Parse(objectstorage.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	s := &service{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hook == nil || !s.hook(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	s.options = bucket.Options{
		Endpoint: s.URL, CAFile: ca,
		CredentialsDir: secret(t, map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}),
	}
	return s
}

func (s *service) open(t *testing.T, address string) *bucket.Bucket {
	t.Helper()
	place, err := bucket.ParsePlace(address)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.options.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file writes a file of some size, and returns its path and content.
func file(t *testing.T, size int) (string, []byte) {
	t.Helper()
	content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestUploadListDownloadPrune(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b, other := s.open(t, "s3://backups/jobset/"), s.open(t, "s3://backups/jobset/other/")
	path, content := file(t, 20<<20) // more than one part
	short, _ := file(t, 1<<10)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, err := b.Newest(t.Context()); err == nil || err.Error() != "s3://backups/jobset/ has no backup" {
		t.Errorf("the newest of none: %v", err)
	}
	var names []string
	for i, from := range []string{short, short, short, path} {
		name := backup.Name(start.Add(time.Duration(i)*time.Hour), int64(10-i))
		if err := errors.Join(b.Upload(t.Context(), from, name), other.Upload(t.Context(), short, name)); err != nil {
			t.Fatal(err)
		}
		names = append([]string{name}, names...)
	}
	if err := b.Upload(t.Context(), short, "notes.txt"); err != nil {
		t.Fatal(err)
	}
	listed := func(b *bucket.Bucket) (names []string) {
		kept, err := b.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kept {
			names = append(names, k.Name)
		}
		return names
	}
	if diff := cmp.Diff(names, listed(b)); diff != "" {
		t.Errorf("backups (-want +got):\n%s", diff)
	}
	var got bytes.Buffer
	newest, err := b.Newest(t.Context())
	if err != nil || newest != names[0] {
		t.Errorf("the newest is %s, %v", newest, err)
	}
	if err := b.Download(t.Context(), newest, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes of %d, %v", got.Len(), len(content), err)
	}
	if err := b.Prune(t.Context(), names[0], 0); err != nil || len(listed(b)) != 4 {
		t.Errorf("keeping all: %v, %v", listed(b), err)
	}
	// The clock was set back: the newest one is not the last.
	if err := b.Prune(t.Context(), names[3], 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{names[0], names[3]}, listed(b)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(listed(other)) != 4 {
		t.Errorf("another prefix has %v", listed(other))
	}
	notes := s.open(t, "s3://backups/jobset/notes.txt")
	if name, err := notes.Newest(t.Context()); err != nil || name != "notes.txt" {
		t.Errorf("%s, %v", name, err)
	}
	if err := b.Download(t.Context(), name(t, notes), &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func name(t *testing.T, b *bucket.Bucket) string {
	t.Helper()
	name, err := b.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// answer answers a request with an error of the protocol.
func answer(w http.ResponseWriter, status int, code, more string) bool {
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>About " + code + ".</Message>" + more + "</Error>"))
	return true
}

// TestFailuresOfUploads: each message names what must change.
func TestFailuresOfUploads(t *testing.T) {
	t.Parallel()
	s := newService(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	refuse := func(status int, code, more string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { return answer(w, status, code, more) }
	}
	path, _ := file(t, 1<<20)
	for name, tc := range map[string]struct {
		address string
		options func(*bucket.Options)
		hook    func(http.ResponseWriter, *http.Request) bool
		want    string
	}{
		"no such bucket": {
			address: "s3://another/", want: `uploading to s3://another/b.db: the bucket "another" does not exist at URL: create it, or name another one`,
		},
		"access denied": {
			hook: refuse(http.StatusForbidden, "AccessDenied", ""),
			want: "uploading to s3://backups/b.db: access is denied: the credentials from DIR need the permission s3:PutObject",
		},
		"a key that is not known": {
			hook: refuse(http.StatusForbidden, "InvalidAccessKeyId", ""),
			want: "uploading to s3://backups/b.db: URL does not accept the credentials from DIR: About InvalidAccessKeyId.",
		},
		"another region": {
			hook: refuse(http.StatusBadRequest, "AuthorizationHeaderMalformed", "<Region>eu-central-1</Region>"),
			want: "uploading to s3://backups/b.db: --s3-region: must be eu-central-1, the region of the bucket",
		},
		"a clock that is wrong": {
			hook: refuse(http.StatusForbidden, "RequestTimeTooSkewed", ""),
			want: "uploading to s3://backups/b.db: the clock of this machine and that of URL differ too much",
		},
		"an authority that is not known": {
			options: func(o *bucket.Options) { o.CAFile = "" },
			want:    "uploading to s3://backups/b.db: --s3-ca-file: must have the authority of the certificate of URL: ",
		},
		"a certificate for another name": {
			options: func(o *bucket.Options) { o.Endpoint = strings.Replace(o.Endpoint, "127.0.0.1", "localhost", 1) },
			want:    "uploading to s3://backups/b.db: --s3-endpoint: the certificate of https://localhost:",
		},
		"a service without TLS": {
			options: func(o *bucket.Options) { o.Endpoint = "https" + strings.TrimPrefix(plain.URL, "http") },
			want:    "uploading to s3://backups/b.db: --s3-endpoint: https" + strings.TrimPrefix(plain.URL, "http") + " answers without TLS: ",
		},
		"nothing listens": {
			options: func(o *bucket.Options) { o.Endpoint = closed.URL },
			want:    "uploading to s3://backups/b.db: --s3-endpoint: " + closed.URL + " cannot be reached: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.hook == nil { // such a case pauses before it tries again, and begins after all that have a hook
				t.Parallel()
			} else {
				s.hook = tc.hook
			}
			options := s.options
			if tc.options != nil {
				tc.options(&options)
			}
			place, err := bucket.ParsePlace("s3://backups/")
			if tc.address != "" {
				place, err = bucket.ParsePlace(tc.address)
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := options.Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.NewReplacer("URL", s.URL, "DIR", options.CredentialsDir).Replace(tc.want)
			if err := b.Upload(t.Context(), path, "b.db"); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
	s.hook = nil
}
