// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// RoundTripper wraps the transport of clients that have a defect.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Refusal returns the answer to a request that is refused.
func Refusal(code int) *http.Response { return refusal(&Request{}, code) }

// Silence returns the answer to a watch that never shows anything, and that ends with the context.
func Silence(ctx context.Context) *http.Response {
	response := answer(http.StatusOK, nil)
	ctx, cancel := context.WithCancel(ctx)
	response.Body = silence{ctx, cancel}
	return response
}

type silence struct {
	ctx context.Context
	end context.CancelFunc
}

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, io.EOF
}

func (s silence) Close() error {
	s.end()
	return nil
}

// Recorded is an answer that can be given again.
type Recorded struct {
	mu   sync.Mutex
	body []byte
}

// Record keeps a copy of an answer, which can still be read.
func (r *Recorded) Record(response *http.Response) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body = body
}

// Known returns whether there is one.
func (r *Recorded) Known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body != nil
}

// Answer returns the answer again.
func (r *Recorded) Answer() *http.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := answer(http.StatusOK, nil)
	response.Body = io.NopCloser(bytes.NewReader(r.body))
	return response
}
