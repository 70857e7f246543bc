// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// NewHandler bounds what waits in the watches that next serves. It must come after authentication. It looks for writes that wait too long until the
// server has stopped.
func NewHandler(next http.Handler, stopped <-chan struct{}) http.Handler {
	registerMetrics()
	b := newBudget(clock.RealClock{})
	go b.sweep(stopped)
	return b.handler(next)
}

func (b *budget) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if info, ok := request.RequestInfoFrom(req.Context()); !ok || info.Verb != "watch" {
			next.ServeHTTP(w, req)
			return
		}
		var name string
		if user, ok := request.UserFrom(req.Context()); ok {
			name = user.GetName()
		}
		counted := &writer{ResponseWriter: w, budget: b, user: name}
		counted.end = func() {
			klog.FromContext(req.Context()).V(2).Info("Ending a watch whose client does not read", "user", name, "path", req.URL.Path)
			// A deadline that is over makes the write return: the connection of HTTP/1.1 ends, or the stream of HTTP/2.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
		}
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(counted), req)
	})
}

// writer counts what is being written to one client.
type writer struct {
	http.ResponseWriter
	budget *budget
	user   string
	end    func()
}

var _ responsewriter.UserProvidedDecorator = &writer{}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	waits := w.budget.begin(w.user, len(data), w.end)
	defer w.budget.finish(waits)
	return w.ResponseWriter.Write(data)
}
