// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFailuresOfDownloads(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := s.open(t, "s3://backups/")
	path, _ := file(t, 8<<20)
	if err := b.Upload(t.Context(), path, "b.db"); err != nil {
		t.Fatal(err)
	}
	if err := b.Download(t.Context(), "b.db", full{}); !errors.Is(err, syscall.ENOSPC) ||
		err.Error() != "writing what is downloaded: no space left on device" {
		t.Errorf("full disk: %v", err)
	}
	_, err := s.open(t, "s3://another/").Newest(t.Context())
	if want := `listing s3://another/: the bucket "another" does not exist at ` + s.URL; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodGet && answer(w, http.StatusForbidden, "AccessDenied", "")
	}
	if _, err := b.Newest(t.Context()); err == nil || !strings.Contains(err.Error(), " need the permission s3:ListBucket") {
		t.Errorf("listing: %v", err)
	}
	if err := b.Download(t.Context(), "b.db", &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), " need the permission s3:GetObject") {
		t.Errorf("downloading: %v", err)
	}
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Length", "8388608")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", `"x"`)
		_, _ = w.Write(make([]byte, 1<<20))
		panic(http.ErrAbortHandler)
	}
	if err := b.Download(t.Context(), "b.db", &bytes.Buffer{}); err == nil ||
		!strings.HasPrefix(err.Error(), "downloading s3://backups/b.db: the connection ended after ") {
		t.Errorf("cut off: %v", err)
	}
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodDelete && answer(w, http.StatusForbidden, "AccessDenied", "")
	}
	old := backup.Name(time.Unix(0, 0), 1)
	if err := b.Upload(t.Context(), path, old); err != nil {
		t.Fatal(err)
	}
	err = b.Prune(t.Context(), "b.db", 1)
	if want := "deleting the old backup s3://backups/" + old + ": access is denied: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
