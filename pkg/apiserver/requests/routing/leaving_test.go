// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// TestClientsMoveBeforeTheEnd asks again and again over one connection, which the server gives up within the delay.
func TestClientsMoveBeforeTheEnd(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			ctx, shutDown := context.WithCancel(t.Context())
			defer shutDown()
			leaving := NewLeaving(ctx, 50*time.Millisecond)
			handler := leaving.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			s := httptest.NewUnstartedServer(handler)
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			reused := func() bool {
				t.Helper()
				var conn httptrace.GotConnInfo
				trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn = info }}
				req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := s.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				return conn.Reused
			}
			reused()
			for range 20 {
				if !reused() {
					t.Fatal("the client had to open another connection before the server was to end")
				}
			}
			shutDown()
			poll.Until(t, "the client opens another connection", func() bool { return !reused() })
		})
	}
}
