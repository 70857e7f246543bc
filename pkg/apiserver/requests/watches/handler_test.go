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
	"strings"
	"syscall"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
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
				shared: newBudget(clock.RealClock{}, writeGrace, space.DefaultMemory), copies: newBudget(clock.RealClock{}, copyGrace, space.DefaultMemory),
				bounds: newBounds(&fakeMemory{}, space.DefaultMemory),
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

// TestEndedWebSocketIsNoDamage wants the client of a WebSocket, which the server ends while its first bytes are written, to see that the
// connection has ended. It saw a message that did not decrypt, as if the network had damaged it.
func TestEndedWebSocketIsNoDamage(t *testing.T) {
	h := &handler{
		shared: newBudget(clock.RealClock{}, writeGrace, space.DefaultMemory), copies: newBudget(clock.RealClock{}, copyGrace, space.DefaultMemory),
		bounds: newBounds(&fakeMemory{}, space.DefaultMemory),
	}
	h.next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if err := conn.SetWriteDeadline(over); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{Verb: "watch"})))
	}))
	defer server.Close()
	response, err := server.Client().Get(server.URL) //nolint:noctx // the server ends with the test
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v, want the end of the connection", err)
	}
}

// TestConnectionOf wants requests of one connection of HTTP/2 to have one identity, and those of others to have another.
func TestConnectionOf(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.Proto+" "+connectionOf(req))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ask := func(client *http.Client) string {
		response, err := client.Get(server.URL) //nolint:noctx // the server ends with the test
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	another := &http.Client{Transport: server.Client().Transport.(*http.Transport).Clone()}
	first := ask(server.Client())
	if second := ask(server.Client()); second != first || !strings.HasPrefix(first, "HTTP/2.0 127.0.0.1:") || !strings.HasSuffix(first, " "+server.Listener.Addr().String()) {
		t.Errorf("the connections of two requests are %q and %q", first, second)
	}
	if other := ask(another); other == first {
		t.Errorf("another connection is %q, too", other)
	}
}
