// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

// gone is the connection of a client that has left.
type gone struct {
	http.ResponseWriter
	net.Conn
	writes int
	closed bool
}

var errGone = errors.New("http2: stream closed")

func (g *gone) Write([]byte) (int, error) {
	g.writes++
	return 0, errGone
}

func (g *gone) Close() error {
	g.closed = true
	return nil
}

func (g *gone) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return g, bufio.NewReadWriter(bufio.NewReader(g), bufio.NewWriter(g)), nil
}

// TestClientThatLeaves wants a watch whose client has left to end without an error, because the library logs each of them.
func TestClientThatLeaves(t *testing.T) {
	for name, writerOf := range map[string]func(t *testing.T, w http.ResponseWriter) io.Writer{
		"HTTP": func(_ *testing.T, w http.ResponseWriter) io.Writer { return w },
		"WebSocket": func(t *testing.T, w http.ResponseWriter) io.Writer {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, served := &gone{ResponseWriter: httptest.NewRecorder()}, false
			h := &handler{
				shared: newBudget(clock.RealClock{}, writeGrace, defaultMemory), copies: newBudget(clock.RealClock{}, copyGrace, defaultMemory),
				number: newNumber("watches", defaultMemory, watchMemory),
			}
			h.next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				served = true
				events := writerOf(t, w)
				for range 2 {
					if n, err := events.Write([]byte("event")); n != 5 || err != nil {
						t.Errorf("%d bytes are written: %v", n, err)
					}
				}
				if req.Context().Err() == nil {
					t.Error("the watch goes on")
				}
			})
			ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{Verb: "watch"})
			h.ServeHTTP(client, httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil))
			if !served || client.writes != 1 {
				t.Errorf("served: %t; %d writes to a client that has left", served, client.writes)
			}
			if name == "WebSocket" && !client.closed {
				t.Error("the connection is still open")
			}
		})
	}
}
