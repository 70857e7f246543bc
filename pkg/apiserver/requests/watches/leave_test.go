// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestLogOfClientsThatLeave has clients that leave while more is sent to them than their connections hold.
func TestLogOfClientsThatLeave(t *testing.T) {
	tier.OnRequest(t, "runs a server and sends megabytes to each of many watches")
	for name, http2 := range map[string]bool{"over HTTP/2": true, "over HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t)
			admin := s.client(true)
			for i := range 8 {
				s.do(t, admin, http.MethodPost, sets, largeSet(fmt.Sprintf("s%d", i)))
			}
			var bodies []io.Closer
			for range 20 {
				response := s.request(t, s.client(http2), http.MethodGet, sets+"?watch=true", "alice", nil) //nolint:bodyclose // they are closed below
				bodies = append(bodies, response.Body)
			}
			for _, body := range bodies {
				_ = body.Close()
			}
			if err := wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
				return !s.watched(t, admin), nil
			}); err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(filepath.Join(t.ArtifactDir(), "server.log"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(log)) {
				if strings.HasPrefix(line, "E") && strings.Contains(line, "watch") {
					t.Errorf("the log has: %s", line)
				}
			}
		})
	}
}

// watched returns whether the server serves watches.
func (s *server) watched(t *testing.T, client *http.Client) bool {
	t.Helper()
	response := s.request(t, client, http.MethodGet, "/metrics", "admin", nil)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `verb="WATCH"`) {
			return !strings.HasSuffix(strings.TrimSpace(line), " 0")
		}
	}
	t.Fatal("no metric says how many watches there are")
	return false
}
