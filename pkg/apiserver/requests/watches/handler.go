// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
)

// NewHandler bounds the number of the watches that next serves, and what waits in them. It must come after
// authentication. memory is what watches and objects share. It looks for writes that wait too long until the server has stopped.
func NewHandler(next http.Handler, codecs runtime.NegotiatedSerializer, memory *space.Memory, stopped <-chan struct{}) http.Handler {
	registerMetrics()
	limit := memory.Limit()
	h := &handler{
		next: next, codecs: codecs, bounds: newBounds(memory, limit),
		shared: newBudget(clock.RealClock{}, writeGrace, limit), copies: newBudget(clock.RealClock{}, copyGrace, limit),
	}
	go h.shared.sweep(stopped)
	go h.copies.sweep(stopped)
	return h
}

type handler struct {
	next           http.Handler
	codecs         runtime.NegotiatedSerializer
	shared, copies *budget
	bounds         *bounds
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if info, ok := request.RequestInfoFrom(req.Context()); !ok || info.Verb != "watch" {
		h.next.ServeHTTP(w, req)
		return
	}
	requested := watch{connection: connectionOf(req), webSocket: wsstream.IsWebSocketRequest(req)}
	if user, ok := request.UserFrom(req.Context()); ok {
		requested.account = accountOf(user)
	}
	name := requested.account.user
	if err := h.bounds.begin(requested); err != nil {
		responsewriters.ErrorNegotiated(err, h.codecs, schema.GroupVersion{Version: "v1"}, w, req)
		return
	}
	defer h.bounds.end(requested)
	if strings.Contains(req.Header.Get("Accept"), "as=") {
		req = req.WithContext(watchcache.WithTransform(req.Context()))
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	logger := klog.FromContext(ctx)
	counted := &writer{ResponseWriter: w, budget: h.shared, copies: h.copies, user: name}
	counted.end = func(setDeadline func(time.Time) error) {
		logger.V(2).Info("Ending a watch whose client does not read", "user", name, "path", req.URL.Path)
		_ = setDeadline(over)
	}
	counted.leave = func(err error) {
		if !counted.left.Swap(true) {
			logger.V(4).Info("The client of a watch has left", "user", name, "path", req.URL.Path, "reason", err)
		}
		cancel()
	}
	h.next.ServeHTTP(responsewriter.WrapForHTTP1Or2(counted), req.WithContext(ctx))
}

// connectionOf returns the addresses of both ends of the connection of a request. No other connection has the same while it is open.
func connectionOf(req *http.Request) string {
	if local, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return req.RemoteAddr + " " + local.String()
	}
	return req.RemoteAddr
}

// over is a deadline that makes a write return.
var over = time.Unix(1, 0)

// writer counts what is being written to one client.
type writer struct {
	http.ResponseWriter
	budget, copies *budget
	user           string
	// end makes a write return, by its deadline: the connection of HTTP/1.1 ends, or the stream of HTTP/2.
	end func(setDeadline func(time.Time) error)
	// leave ends a watch to which nothing can be written any more, which left says from then on.
	leave func(error)
	left  atomic.Bool
}

var (
	_ responsewriter.UserProvidedDecorator = &writer{}
	_ http.Hijacker                        = &writer{}
)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	return w.write(w.budget, data, w.ResponseWriter, func() { w.end(http.NewResponseController(w.ResponseWriter).SetWriteDeadline) })
}

// write writes to a client. It returns no error: the library logs one as an error for each client that leaves while an event is written.
// The request is canceled instead, which ends the watch.
func (w *writer) write(budget *budget, data []byte, to io.Writer, end func()) (int, error) {
	if w.left.Load() {
		return len(data), nil
	}
	waits := budget.begin(w.user, data, end)
	defer budget.finish(waits)
	if _, err := to.Write(data); err != nil {
		w.leave(err)
	}
	return len(data), nil
}

// Hijack implements http.Hijacker, for watches over WebSocket.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	inner, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	counted := &conn{Conn: inner, of: w}
	return counted, bufio.NewReadWriter(buffered.Reader, bufio.NewWriter(counted)), nil
}

// conn counts what is being written to the client of a WebSocket, which is a copy for each client.
type conn struct {
	net.Conn
	of *writer
}

// Write implements net.Conn.
func (c *conn) Write(data []byte) (int, error) {
	n, err := c.of.write(c.of.copies, data, c.Conn, func() { c.of.end(c.SetWriteDeadline) })
	if c.of.left.Load() {
		cut(c.Conn) // the library ends the watch when it cannot read from the connection, and does not ask the context
	}
	return n, err
}

// cut closes a connection without the farewell of TLS. After a write that failed, a client could not decrypt it, and would report damage.
func cut(c net.Conn) {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	_ = c.Close()
}
