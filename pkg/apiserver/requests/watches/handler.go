// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
)

// NewHandler bounds the number of the watches that next serves, and what waits in them. It must come after
// authentication. It looks for writes that wait too long until the server has stopped.
func NewHandler(next http.Handler, codecs runtime.NegotiatedSerializer, stopped <-chan struct{}) http.Handler {
	registerMetrics()
	memory := memoryLimit()
	h := &handler{
		next: next, codecs: codecs, number: newNumber("watches", memory, watchMemory), webSockets: newNumber("watches over WebSocket", memory,
			webSocketMemory),
		shared: newBudget(clock.RealClock{}, writeGrace, memory), copies: newBudget(clock.RealClock{}, copyGrace, memory),
	}
	go h.shared.sweep(stopped)
	go h.copies.sweep(stopped)
	return h
}

type handler struct {
	next           http.Handler
	codecs         runtime.NegotiatedSerializer
	shared, copies *budget
	// number counts all watches but those over WebSocket.
	number, webSockets *number
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if info, ok := request.RequestInfoFrom(req.Context()); !ok || info.Verb != "watch" {
		h.next.ServeHTTP(w, req)
		return
	}
	var name string
	if user, ok := request.UserFrom(req.Context()); ok {
		name = user.GetName()
	}
	number := h.number
	if wsstream.IsWebSocketRequest(req) {
		number = h.webSockets
	}
	if err := number.begin(name); err != nil {
		responsewriters.ErrorNegotiated(err, h.codecs, schema.GroupVersion{Version: "v1"}, w, req)
		return
	}
	defer number.end(name)
	if strings.Contains(req.Header.Get("Accept"), "as=") {
		req = req.WithContext(watchcache.WithTransform(req.Context()))
	}
	counted := &writer{ResponseWriter: w, budget: h.shared, copies: h.copies, user: name}
	counted.end = func(setDeadline func(time.Time) error) {
		klog.FromContext(req.Context()).V(2).Info("Ending a watch whose client does not read", "user", name, "path", req.URL.Path)
		_ = setDeadline(over)
	}
	h.next.ServeHTTP(responsewriter.WrapForHTTP1Or2(counted), req)
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
}

var (
	_ responsewriter.UserProvidedDecorator = &writer{}
	_ http.Hijacker                        = &writer{}
)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	waits := w.budget.begin(w.user, data, func() { w.end(http.NewResponseController(w.ResponseWriter).SetWriteDeadline) })
	defer w.budget.finish(waits)
	return w.ResponseWriter.Write(data)
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
	waits := c.of.copies.begin(c.of.user, data, func() { c.of.end(c.SetWriteDeadline) })
	defer c.of.copies.finish(waits)
	return c.Conn.Write(data)
}
