// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// lostTimeout is how long a request waits for a store that is lost.
const lostTimeout = time.Second

// Leaving makes clients move to other servers before this one ends. kube-apiserver sends all requests over one
// connection, which it keeps while the server is only not ready: at the end of the delay requests would still come, and
// be refused. So in the last part of the delay, when the server is no endpoint any more, each response also asks the
// client to open another connection.
//
// The same goes for a server that has lost its store, while other servers may have it. Without this, clients would come to this one as
// long as it is cut off. Since a client moves when it is answered, requests do not wait long for such a store.
type Leaving struct {
	begun atomic.Bool
	lost  func() bool
}

// NewLeaving lets clients move when four fifths of the shutdown delay are over: with the probes of the manifests,
// twelve of fifteen seconds, in which also a server whose pod was not deleted is found not to be ready. They also move while the
// function, unless it is nil, says that the store is lost.
func NewLeaving(ctx context.Context, delay time.Duration, lost func() bool) *Leaving {
	l := &Leaving{lost: lost}
	context.AfterFunc(ctx, func() { time.AfterFunc(delay*4/5, l.begin) })
	return l
}

func (l *Leaving) begin() { l.begun.Store(true) }

// Filter sends GOAWAY with the response in HTTP/2, and closes the connection after it in HTTP/1.1. Requests that are
// under way are answered, and those that come while the store is lost are bounded.
func (l *Leaving) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		lost := l.lost != nil && l.lost()
		if l.begun.Load() || lost {
			w.Header().Set("Connection", "close")
		}
		if lost && strings.HasPrefix(req.URL.Path, "/apis/") {
			ctx, cancel := context.WithTimeout(req.Context(), lostTimeout)
			defer cancel()
			req = req.WithContext(ctx)
		}
		next.ServeHTTP(w, req)
	})
}
