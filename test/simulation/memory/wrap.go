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

// newRefusal returns the answer to a request that is refused.
func newRefusal(code int) *http.Response { return refusal(&Request{}, code) }

// newSilence returns the answer to a watch that never shows anything, and that ends with the context.
func newSilence(ctx context.Context) *http.Response {
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

// recorded is an answer that can be given again.
type recorded struct {
	mu   sync.Mutex
	body []byte
}

// record keeps a copy of an answer, which can still be read.
func (r *recorded) record(response *http.Response) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body = body
}

// known returns whether there is one.
func (r *recorded) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body != nil
}

// answer returns the answer again.
func (r *recorded) answer() *http.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := answer(http.StatusOK, nil)
	response.Body = io.NopCloser(bytes.NewReader(r.body))
	return response
}
