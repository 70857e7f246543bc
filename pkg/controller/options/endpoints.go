// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	readHeaderTimeout = 10 * time.Second
	closeTimeout      = 3 * time.Second
)

// endpoint is an HTTP server whose port is open already, so that a port in use is found before any work begins.
type endpoint struct {
	listener net.Listener
	server   *http.Server
}

// listen opens the ports of the endpoints that are switched on.
func (o *Options) listen(clients clients, watchdog *leaderelection.HealthzAdaptor, synced func() bool) ([]endpoint, error) {
	var endpoints []endpoint
	if o.HealthBindAddress != disabledAddress {
		listener, err := net.Listen("tcp", o.HealthBindAddress)
		if err != nil {
			return nil, flagError("health-probe-bind-address", "%w; choose a free address, or 0 to switch it off", err)
		}
		endpoints = append(endpoints, newEndpoint(listener, healthHandler(watchdog, synced)))
	}
	if o.MetricsBindAddress != disabledAddress {
		certificates, err := newCertificates(o.MetricsCertDir)
		if err != nil {
			return nil, flagError("metrics-cert-dir", "must hold tls.crt and tls.key: %w", err)
		}
		listener, err := net.Listen("tcp", o.MetricsBindAddress)
		if err != nil {
			return nil, flagError("metrics-bind-address", "%w; choose a free address, or 0 to switch it off", err)
		}
		secure := tls.NewListener(listener, &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: certificates.get,
			NextProtos:     []string{"http/1.1"},
		})
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", newGuard(clients.main, legacyregistry.Handler()))
		endpoints = append(endpoints, newEndpoint(secure, mux))
	}
	return endpoints, nil
}

func newEndpoint(listener net.Listener, handler http.Handler) endpoint {
	return endpoint{listener: listener, server: &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}}
}

// serve answers requests until the context ends.
func (e endpoint) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = e.server.Shutdown(closing) // what is open after the time is cut off by the end of the process
	})()
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", e.listener.Addr(), err)
	}
	return nil
}

// healthHandler serves /healthz, which fails for a leader that does not renew its lease, and /readyz, which fails until
// the caches are filled.
func healthHandler(watchdog *leaderelection.HealthzAdaptor, synced func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, watchdog.Check(r))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !synced() {
			answer(w, errors.New("waiting for the caches of JobSets, Jobs, Services and volume claims"))
			return
		}
		answer(w, nil)
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
