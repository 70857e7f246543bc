// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Refusals that share a status with another one.
const (
	// notThere refuses a request for an object that does not exist; http.StatusNotFound refuses a path.
	notThere = 1000 + http.StatusNotFound
	// changed refuses a write of an object that has changed; http.StatusConflict refuses a name that is taken.
	changed = 1000 + http.StatusConflict
)

// gone ends a watch whose version has expired.
const gone = "gone"

// reasons are the reasons of refusals.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusForbidden: metav1.StatusReasonForbidden, notThere: metav1.StatusReasonNotFound,
	http.StatusConflict: metav1.StatusReasonAlreadyExists, changed: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonExpired,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

// refusal returns the answer to a request that is not carried out.
func refusal(r *Request, code int) *http.Response {
	if code == http.StatusNotFound { // as servers answer for a path that they do not serve
		response := answer(code, nil)
		response.Header.Set("Content-Type", "text/plain; charset=utf-8")
		response.Body = io.NopCloser(bytes.NewReader([]byte("404 page not found\n")))
		return response
	}
	return answer(code%1000, statusOf(r, code))
}

func statusOf(r *Request, code int) map[string]any {
	message := fmt.Sprintf("%s %s %q: refused with %d", r.Verb, r.Resource.GroupResource(), r.Name, code%1000)
	if code == http.StatusForbidden {
		message = fmt.Sprintf("%s is forbidden: User cannot %s resource", r.Resource.GroupResource(), r.Verb)
	}
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "reason": string(reasons[code]), "code": code % 1000,
		"details": map[string]any{"name": r.Name, "group": r.Resource.Group, "kind": r.Resource.Resource},
	}
}

func answer(code int, body map[string]any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(data)),
	}
}

// stream is the body of the answer to a watch.
type stream struct {
	server  *Server
	request *Request
	kind    string
	ctx     context.Context
	expires *time.Timer
	closed  chan struct{}

	// shown is the version of the last event, and pending is what has not been read.
	shown   int
	pending bytes.Buffer
	// ended means that no more is shown. The lock of the server is held for both.
	ended bool
}

// watch begins a watch. The lock is held.
func (s *Server) watch(ctx context.Context, r *Request, kind string) *http.Response {
	if r.Initial && s.unstreamed {
		return refusal(r, http.StatusUnprocessableEntity)
	}
	from, _ := strconv.Atoi(r.From)
	if !r.Initial && from < s.oldest && r.From != "" && r.From != "0" {
		return refusal(r, http.StatusGone)
	}
	if r.Timeout == 0 {
		r.Timeout = time.Hour
	}
	w := &stream{server: s, request: r, kind: kind, ctx: ctx, shown: from, expires: time.NewTimer(r.Timeout), closed: make(chan struct{})}
	if r.Initial {
		w.shown = s.version
		for _, object := range s.list(r.Resource.GroupResource()) {
			if r.selects(object) {
				w.show("ADDED", in(r.Resource.GroupVersion(), kind, object))
			}
		}
		w.show("BOOKMARK", map[string]any{"apiVersion": r.Resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(s.version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	s.streams[w] = true
	response := answer(http.StatusOK, nil)
	response.Body = w
	return response
}

func (w *stream) show(kind string, object map[string]any) {
	data, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	w.pending.Write(append(data, '\n'))
}

// end ends a watch. The lock is held.
func (w *stream) end(why string) {
	if why == gone && !w.ended {
		w.show("ERROR", statusOf(w.request, http.StatusGone))
	}
	w.ended = true
}

// Read implements io.Reader.
func (w *stream) Read(p []byte) (int, error) {
	for {
		w.server.mu.Lock()
		next := w.showDue()
		if w.pending.Len() > 0 {
			defer w.server.mu.Unlock()
			return w.pending.Read(p)
		}
		ended, changed := w.ended, w.server.changed
		w.server.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		var due <-chan time.Time
		if next > 0 {
			timer := time.NewTimer(next)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		case <-w.closed:
			return 0, io.ErrClosedPipe
		case <-w.expires.C:
			return 0, io.EOF
		case <-changed:
		case <-due:
		}
	}
}

// showDue shows the events whose time has come, and returns how long the next one takes; 0 without one.
func (w *stream) showDue() time.Duration {
	for _, e := range w.server.log[w.request.Resource.GroupResource()] {
		if e.version <= w.shown || w.ended {
			continue
		}
		if wait := time.Until(e.at.Add(w.server.lag)); wait > 0 {
			return wait
		}
		w.shown = e.version
		if w.request.selects(e.object) {
			w.show(e.kind, in(w.request.Resource.GroupVersion(), w.kind, e.object))
		}
	}
	return 0
}

// Close implements io.Closer.
func (w *stream) Close() error {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if w.server.streams[w] {
		delete(w.server.streams, w)
		close(w.closed)
		w.expires.Stop()
	}
	return nil
}

var _ io.ReadCloser = &stream{}
