// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

const (
	// holdPause is between two attempts of a held request; at most twice as long.
	holdPause = 400 * time.Millisecond
	// holdPauseRefused is the same for one that is refused.
	holdPauseRefused = 2 * time.Second
	// holdTimeout is how long a request is held. After two minutes without an error, a reflector forgets its pauses.
	holdTimeout = 3 * time.Minute
	// holdReport is how often the log says that requests are held.
	holdReport = 30 * time.Second
	// holdDrain bounds how much of a refusal is read so that its connection can be used again.
	holdDrain = 64 << 10
)

// Hold keeps the lists and watches of informers waiting while the main API is away, instead of in the pauses of their
// reflectors, which grow to a minute: what admission knows would be that old after the main API has come back. It is
// for clients of informers only.
type Hold struct {
	ended context.Context

	mu sync.Mutex
	// reported is when the log last said that requests for a path wait.
	reported map[string]time.Time
}

// NewHold returns a Hold that lets all requests fail when the context ends.
func NewHold(ctx context.Context) *Hold { return &Hold{ended: ctx, reported: map[string]time.Time{}} }

// Config returns the configuration for clients of informers.
func (h *Hold) Config(config *rest.Config) *rest.Config {
	held := rest.CopyConfig(config)
	held.Wrap(h.wrap)
	return held
}

// Follower returns what makes clients follow objects of the main API: they wait while it is away, and list again after it was restored.
func (h *Hold) Follower() func(http.RoundTripper) http.RoundTripper {
	restored := rewind.Wrapper()
	return func(next http.RoundTripper) http.RoundTripper { return h.wrap(restored(next)) }
}

func (h *Hold) wrap(next http.RoundTripper) http.RoundTripper { return &holding{h, next} }

type holding struct {
	*Hold
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (h *holding) WrappedRoundTripper() http.RoundTripper { return h.next }

// RoundTrip implements http.RoundTripper. Each attempt has the credentials of the first, so that a request that is
// refused for them is not held.
func (h *holding) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return h.next.RoundTrip(req)
	}
	deadline := time.Now().Add(holdTimeout)
	for {
		response, err := h.next.RoundTrip(req)
		pause := pauseAfter(response, err)
		if pause == 0 || req.Context().Err() != nil || h.ended.Err() != nil || time.Now().Add(pause).After(deadline) {
			return response, err
		}
		h.report(req, response, err)
		if response != nil {
			_, _ = io.CopyN(io.Discard, response.Body, holdDrain)
			response.Body.Close()
		}
		if err := h.sleep(req.Context(), wait.Jitter(pause, 1)); err != nil {
			return nil, err
		}
	}
}

// sleep returns an error if the request or the process ends before.
func (h *Hold) sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.ended.Done():
		return h.ended.Err()
	case <-timer.C:
		return nil
	}
}

// pauseAfter returns how long a request waits before it is sent again; 0 if it is answered.
func pauseAfter(response *http.Response, err error) time.Duration {
	switch {
	case err != nil:
		return holdPause
	case response.StatusCode == http.StatusForbidden:
		// Permissions are in force a moment after kube-apiserver serves.
		return holdPauseRefused
	case response.StatusCode >= http.StatusInternalServerError:
		return holdPause
	}
	return 0
}

func (h *Hold) report(req *http.Request, response *http.Response, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	path := req.URL.Path
	if time.Since(h.reported[path]) < holdReport {
		return
	}
	h.reported[path] = time.Now()
	status := ""
	if response != nil {
		status = response.Status
	}
	klog.FromContext(h.ended).Info("Waiting for the main cluster", "for", path, "status", status, "err", err)
}
