// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestInterruptedUpload: neither an object nor parts of it are left, whether the service or the command ends.
func TestInterruptedUpload(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := s.open(t, "s3://backups/cut/")
	path, _ := file(t, 40<<20)
	for _, what := range []string{"the service", "the command"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		end := map[string]func(){"the service": func() {}, "the command": cancel}[what]
		var parts, removed atomic.Int64
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.Method == http.MethodPut && r.URL.Query().Has("partNumber") && parts.Add(1) > 1:
				end()
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					err = conn.Close()
				}
				if err != nil {
					t.Error(err)
				}
				return true
			case r.Method == http.MethodDelete && r.URL.Query().Has("uploadId"):
				removed.Add(1)
			}
			return false
		}
		err := b.Upload(ctx, path, "b.db")
		if err == nil || !strings.HasPrefix(err.Error(), "uploading to s3://backups/cut/b.db: ") {
			t.Errorf("%s ends: %v", what, err)
		}
		if removed.Load() == 0 {
			t.Errorf("%s ends: the parts are left", what)
		}
		s.hook = nil
		if err := b.Download(t.Context(), "b.db", &bytes.Buffer{}); err == nil ||
			err.Error() != "downloading s3://backups/cut/b.db: there is no such object" {
			t.Errorf("%s ends: %v", what, err)
		}
	}
}
