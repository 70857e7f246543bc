// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/payload"
)

const (
	// maxBytes bounds a question. It is what kube-apiserver takes from its own clients.
	maxBytes = 3 << 20
	// maxReading bounds the questions that are being received, and so their memory; maxAnswering those that are being answered.
	maxReading, maxAnswering = 100, 8
	// readTimeout is how long a client may take to send its question, and how long a question waits for its turn.
	readTimeout = 5 * time.Second
)

// Webhook completes pods that are being created.
type Webhook struct {
	// Path is where kube-apiserver sends its questions.
	Path string
	// Mutate changes a pod that is being created in a namespace, or returns why it must not be created.
	Mutate func(pod *corev1.Pod, namespace string) error
}

// handler answers the questions of one webhook.
type handler struct {
	mutate             func(pod *corev1.Pod, namespace string) error
	reading, answering *semaphore.Weighted
	refusals           *refusals
	timeout            time.Duration
}

// NewHandler answers requests for the paths of the webhooks, and passes on all others.
func NewHandler(next http.Handler, webhooks ...Webhook) http.Handler {
	registerMetrics()
	paths := make(map[string]http.Handler, len(webhooks))
	for _, w := range webhooks {
		paths[w.Path] = newHandler(w)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if h, found := paths[req.URL.Path]; found {
			h.ServeHTTP(w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func newHandler(w Webhook) *handler {
	return &handler{
		mutate: w.Mutate, reading: semaphore.NewWeighted(maxReading), answering: semaphore.NewWeighted(maxAnswering),
		refusals: newRefusals(), timeout: readTimeout,
	}
}

// failure is an answer that is no AdmissionReview.
type failure struct {
	code   int
	result result
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func bad(code int, format string, args ...any) *failure {
	return &failure{code: code, result: resultBad, err: fmt.Errorf(format, args...)}
}

// ServeHTTP answers whatever happens, also when answering panics.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	begin, outcome := time.Now(), resultPanic
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(req.Context()).Error(nil, "Completing a pod panicked", "cause", cause, "stack", string(debug.Stack()))
			http.Error(w, "internal error; the log of jobset-apiserver says why", http.StatusInternalServerError)
		}
		observe(outcome, time.Since(begin))
	}()
	body, result, err := h.serve(w, req)
	outcome = result
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
		return
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{code: http.StatusInternalServerError, err: err}
	}
	if f.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, f.Error(), f.code)
}

func (h *handler) serve(w http.ResponseWriter, req *http.Request) ([]byte, result, error) {
	ctx, cancel := context.WithTimeout(req.Context(), h.timeout)
	defer cancel()
	data, err := h.read(ctx, w, req)
	if err != nil {
		return nil, failed(err), err
	}
	if err := acquire(ctx, h.answering); err != nil {
		return nil, failed(err), err
	}
	defer h.answering.Release(1)
	review, pod, err := decode(data)
	if err != nil {
		return nil, resultBad, err
	}
	response, result := h.answer(ctx, review.Request, pod)
	review.Request, review.Response = nil, response
	body, err := json.Marshal(review)
	return body, result, err
}

func failed(err error) result {
	var f *failure
	if errors.As(err, &f) {
		return f.result
	}
	return resultBad
}

// acquire waits for a turn.
func acquire(ctx context.Context, turns *semaphore.Weighted) error {
	if err := turns.Acquire(ctx, 1); err != nil {
		return &failure{code: http.StatusServiceUnavailable, result: resultBusy, err: errors.New("too many requests at the same time")}
	}
	return nil
}

// read receives a question. Its memory grows with what was received, not with what was announced.
func (h *handler) read(ctx context.Context, w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if req.Method != http.MethodPost {
		return nil, bad(http.StatusMethodNotAllowed, "the method must be POST")
	}
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, bad(http.StatusUnsupportedMediaType, "the content type must be application/json")
	}
	if req.ContentLength > maxBytes {
		return nil, tooLarge()
	}
	if err := acquire(ctx, h.reading); err != nil {
		return nil, err
	}
	defer h.reading.Release(1)
	deadline, _ := ctx.Deadline()
	// Not all writers know deadlines: those of tests do not.
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
	data, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBytes))
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge()
	case err != nil:
		return nil, bad(http.StatusBadRequest, "the body was not received")
	}
	if err := payload.Check(data); err != nil {
		return nil, bad(http.StatusRequestEntityTooLarge, "%w", err)
	}
	return data, nil
}

func tooLarge() error {
	return bad(http.StatusRequestEntityTooLarge, "the body must have no more than %d bytes (3 MiB)", maxBytes)
}

// answer says what the pod must look like, or why it must not be created.
func (h *handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest, pod *corev1.Pod) (*admissionv1.AdmissionResponse, result) {
	mutated := pod.DeepCopy()
	if err := h.mutate(mutated, request.Namespace); err != nil {
		h.refusals.log(ctx, request, err)
		return refuse(request, err), resultRefused
	}
	patch, err := difference(pod, mutated)
	if err != nil {
		h.refusals.log(ctx, request, err)
		return refuse(request, err), resultRefused
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if patch == nil {
		return response, resultUnchanged
	}
	kind := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &kind
	return response, resultMutated
}
