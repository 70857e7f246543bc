// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// maxBytes bounds a question. It is what kube-apiserver takes from its own clients.
	maxBytes = 3 << 20
	// maxReading and maxAnswering bound the questions of callers with a certificate that are being received, and that are being answered.
	maxReading, maxAnswering = 100, 8
	// maxTurns bounds the questions of other callers that are being answered; half of the processors, if that is less.
	maxTurns = 4
	// readTimeout is how long a question may take, with the time that it waits for its turn.
	readTimeout = 5 * time.Second
	// receiveTimeout is how long a caller without a certificate may take to send the beginning of its question, and how
	// long to send the rest. kube-apiserver has the whole question when it begins to send it.
	receiveTimeout = 2 * time.Second
)

// Webhook completes pods that are being created.
type Webhook struct {
	// Path is where kube-apiserver sends its questions.
	Path string
	// Mutate changes a pod that is being created in a namespace, or returns why it must not be created.
	Mutate func(pod *corev1.Pod, namespace string) error
}

// handler answers the questions of one webhook. Callers with a certificate have turns of their own; all others share turns by address.
type handler struct {
	mutate             func(pod *corev1.Pod, namespace string) error
	callers            Callers
	reading, answering *semaphore.Weighted
	shares             *shares
	queue              *queue
	delays             *semaphore.Weighted
	refusals           *refusals
	timeout, receiving time.Duration
}

// NewHandler answers requests of the callers for the paths of the webhooks, and passes on all others.
func NewHandler(next http.Handler, callers Callers, webhooks ...Webhook) http.Handler {
	registerMetrics()
	paths := make(map[string]http.Handler, len(webhooks))
	for _, w := range webhooks {
		paths[w.Path] = newHandler(callers, w)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if h, found := paths[req.URL.Path]; found {
			h.ServeHTTP(w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func newHandler(callers Callers, w Webhook) *handler {
	return &handler{
		mutate: w.Mutate, callers: callers,
		reading: semaphore.NewWeighted(maxReading), answering: semaphore.NewWeighted(maxAnswering),
		shares: newShares(clock.RealClock{}), queue: newQueue(min(maxTurns, max(runtime.GOMAXPROCS(0)/2, 1))),
		delays: semaphore.NewWeighted(maxDelays), refusals: newRefusals(), timeout: readTimeout, receiving: receiveTimeout,
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

func (h *handler) serve(w http.ResponseWriter, req *http.Request) (body []byte, r result, err error) {
	known, allowed := h.callers.known(req)
	if !known {
		defer func() {
			if err != nil {
				w.Header().Set("Connection", "close") // the next question of this caller has to pay for a connection
			}
		}()
	}
	if !allowed {
		return nil, resultUnauthenticated, &failure{code: http.StatusUnauthorized,
			err: errors.New("a client certificate is required: docs/operations/webhook.md says how kube-apiserver gets one")}
	}
	if err := check(req); err != nil {
		return nil, failed(err), err
	}
	ctx, cancel := context.WithTimeout(req.Context(), h.timeout)
	defer cancel()
	receive := h.receive
	if known {
		receive = h.receiveKnown
	}
	data, done, err := receive(ctx, w, req)
	if err != nil {
		return nil, failed(err), err
	}
	defer done()
	return h.complete(ctx, data)
}

// complete answers a question that was received.
func (h *handler) complete(ctx context.Context, data []byte) ([]byte, result, error) {
	if err := checkPayload(data); err != nil {
		return nil, resultBad, err
	}
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

// answer says what the pod must look like, or why it must not be created.
func (h *handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest,
	pod *corev1.Pod) (*admissionv1.AdmissionResponse, result) {
	mutated := pod.DeepCopy()
	if err := h.mutate(mutated, request.Namespace); err != nil {
		h.refusals.log(ctx, request, err)
		return refuse(request, err), resultRefused
	}
	prune(pod, mutated)
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
