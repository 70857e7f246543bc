// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Leaving makes clients move to other servers before this one ends. kube-apiserver sends all requests over one
// connection, which it keeps while the server is only not ready: at the end of the delay requests would still come, and
// be refused. So in the last part of the delay, when the server is no endpoint any more, each response also asks the
// client to open another connection.
type Leaving struct{ begun atomic.Bool }

// NewLeaving lets clients move when four fifths of the shutdown delay are over: with the probes of the manifests,
// twelve of fifteen seconds, in which also a server whose pod was not deleted is found not to be ready.
func NewLeaving(ctx context.Context, delay time.Duration) *Leaving {
	l := &Leaving{}
	context.AfterFunc(ctx, func() { time.AfterFunc(delay*4/5, l.begin) })
	return l
}

func (l *Leaving) begin() { l.begun.Store(true) }

// Filter sends GOAWAY with the response in HTTP/2, and closes the connection after it in HTTP/1.1. Requests that are
// under way are answered.
func (l *Leaving) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if l.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}
