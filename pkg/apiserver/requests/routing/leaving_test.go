// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
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
			leaving := NewLeaving(ctx, 50*time.Millisecond, nil)
			reused := newClient(t, leaving, http2)
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

// newClient returns what sends a request to a server, and reports whether it was sent over the connection of an earlier one.
func newClient(t *testing.T, leaving *Leaving, http2 bool) (reused func() bool) {
	t.Helper()
	s := httptest.NewUnstartedServer(leaving.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return func() bool {
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
}

// TestRequestsEndWhileTheStoreIsLost lets the handler wait for the store. A request for an object ends, so that its client moves.
func TestRequestsEndWhileTheStoreIsLost(t *testing.T) {
	cases := map[string]struct {
		path       string
		lost, want bool
	}{
		"an object while the store is there": {path: "/apis/jobset.x-k8s.io/v1alpha2/jobsets"},
		"an object while it is lost":         {path: "/apis/jobset.x-k8s.io/v1alpha2/jobsets", lost: true, want: true},
		"the health while it is lost":        {path: "/readyz", lost: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ends := false
			filter := NewLeaving(t.Context(), time.Hour, func() bool { return c.lost }).Filter
			handler := filter(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { _, ends = req.Context().Deadline() }))
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil))
			if ends != c.want {
				t.Errorf("the request has a deadline: %t, must be %t", ends, c.want)
			}
		})
	}
}

// TestClientsMoveWhileTheStoreIsLost lets a server lose its store, and find it again.
func TestClientsMoveWhileTheStoreIsLost(t *testing.T) {
	var lost atomic.Bool
	reused := newClient(t, NewLeaving(t.Context(), time.Hour, lost.Load), true)
	reused()
	if !reused() {
		t.Fatal("the client had to open another connection")
	}
	lost.Store(true)
	reused()
	poll.Until(t, "the client opens another connection", func() bool { return !reused() })
	lost.Store(false)
	reused()
	poll.Until(t, "the client keeps its connection", reused)
}
