// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// reportEvery is how often the log says what the server waits for.
	reportEvery = 30 * time.Second
	// requestTimeout bounds the time in which a request arrives, and twice of it bounds its answer.
	requestTimeout = 5 * time.Second
	maxHeaderBytes = 16 << 10
)

// Server answers while the API server waits. Its methods can be called on nil, and then do nothing.
type Server struct {
	clock    clock.PassiveClock
	listener *startupListener
	http     *http.Server
	// ended is closed when no more connections are accepted.
	ended chan struct{}

	mu sync.Mutex
	// what is waited for, since when, and why it is not there. It is empty while the server does not wait.
	what, reason    string
	since, reported time.Time
}

// Start answers on the port until the API server does. What the filters answer needs nothing that the server waits for.
func Start(listener *net.TCPListener, config *tls.Config, filters ...func(http.Handler) http.Handler) *Server {
	s := &Server{clock: clock.RealClock{}, listener: &startupListener{TCPListener: listener}, ended: make(chan struct{})}
	s.http = &http.Server{
		Handler: s, ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, filter := range slices.Backward(filters) {
		s.http.Handler = filter(s.http.Handler)
	}
	// A connection that stayed open would be answered by this server for as long as it does.
	s.http.SetKeepAlivesEnabled(false)
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(tls.NewListener(s.listener, config)) // it ends when it is told to
	}()
	return s
}

// Listener is the port for the server that follows. Connections that were accepted before are still answered here: each
// has one request, and few seconds for it. A shutdown of http.Server would close those whose requests have not been
// read.
func (s *Server) Listener() net.Listener {
	return &apiListener{Listener: s.listener.TCPListener, take: func() {
		_ = s.listener.Close()
		<-s.ended
		_ = s.listener.SetDeadline(time.Time{})
	}}
}

// Close ends the server and closes the port.
func (s *Server) Close() {
	if s == nil {
		return
	}
	_ = s.http.Close()
	<-s.ended
	_ = s.listener.TCPListener.Close()
}

// Wait notes what the server waits for, and why that is not there yet. The log says so at first, and then from time to time.
func (s *Server) Wait(ctx context.Context, what string, err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if what != s.what {
		s.what, s.since, s.reported = what, now, time.Time{}
	}
	s.reason = strings.Join(strings.Fields(err.Error()), " ")
	if now.Sub(s.reported) >= reportEvery {
		s.reported = now
		klog.FromContext(ctx).Info("Waiting before the server can serve", "for", s.what, "since", s.since.UTC().Format(time.RFC3339), "reason",
			s.reason)
	}
}

// Proceed notes that what the server waited for is there.
func (s *Server) Proceed(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what != "" {
		klog.FromContext(ctx).Info("The wait is over", "for", s.what, "after", s.clock.Since(s.since).Round(time.Millisecond))
	}
	s.what, s.reason = "", ""
}

// message says why requests are not answered.
func (s *Server) message() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what == "" {
		return "jobset-apiserver is starting"
	}
	return fmt.Sprintf("jobset-apiserver has been waiting for %s since %s: %s", s.what, s.since.UTC().Format(time.RFC3339), s.reason)
}

// ServeHTTP implements http.Handler. A restart would cure nothing, so the server is alive. The answer to everything else has no time
// after which clients should try again, because clients would then repeat the request in place.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch path, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/"); path {
	case "livez", "healthz":
		_, _ = io.WriteString(w, "ok") // the caller is free to go
		return
	case "readyz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "[-]start failed: %s\n", s.message())
		return
	}
	status := apierrors.NewServiceUnavailable(s.message()).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status)
}

// startupListener is the port as the server of this package sees it. It can stop to accept connections without closing the port.
type startupListener struct {
	*net.TCPListener
	over atomic.Bool
}

// Accept implements net.Listener.
func (l *startupListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err != nil && l.over.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close makes Accept return, and leaves the port open.
func (l *startupListener) Close() error {
	l.over.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// apiListener is the port as the API server sees it. That server gets the port with the first connection that it wants.
type apiListener struct {
	net.Listener
	take func()
	once sync.Once
}

// Accept implements net.Listener.
func (l *apiListener) Accept() (net.Conn, error) {
	l.once.Do(l.take)
	return l.Listener.Accept()
}
