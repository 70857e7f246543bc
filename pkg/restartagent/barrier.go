// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// probeServer answers the startup probe of a sidecar, with 503 while the barrier is up and with 200 once it is lifted.
// It listens from the beginning, so that a port that is taken is noticed before anybody waits.
type probeServer struct {
	path   string
	lifted atomic.Bool
	// failed gets the error with which the server ends.
	failed   chan error
	listener net.Listener
}

func startProbeServer(config *Config) (*probeServer, error) {
	listener, err := net.Listen("tcp", config.probeAddress())
	if err != nil {
		return nil, fmt.Errorf("%s must be a port that is free in the pod: %w", portVariable, err)
	}
	s := &probeServer{path: config.ProbePath, failed: make(chan error, 1), listener: listener}
	server := &http.Server{Handler: s, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 8 << 10}
	go func() { s.failed <- fmt.Errorf("answering the startup probe: %w", server.Serve(listener)) }()
	return s, nil
}

// ServeHTTP answers a probe.
func (s *probeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != s.path:
		http.NotFound(w, r)
	case !s.lifted.Load():
		http.Error(w, "this pod waits for the other pods of its JobSet", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

func (s *probeServer) lift() { s.lifted.Store(true) }
