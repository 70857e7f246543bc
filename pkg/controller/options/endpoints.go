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
	"net/http/pprof"
	"strings"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	cliflag "k8s.io/component-base/cli/flag"
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
			return nil, o.flagError("health-probe-bind-address", "%w; choose a free address, or 0 to switch it off", err)
		}
		endpoints = append(endpoints, newEndpoint(listener, o.healthHandler(watchdog, synced)))
	}
	if o.MetricsBindAddress != disabledAddress {
		certificates, err := newCertificates(o.MetricsCertDir)
		if err != nil {
			return nil, o.flagError("metrics-cert-dir", "must hold tls.crt and tls.key: %w", err)
		}
		listener, err := net.Listen("tcp", o.MetricsBindAddress)
		if err != nil {
			return nil, o.flagError("metrics-bind-address", "%w; choose a free address, or 0 to switch it off", err)
		}
		config, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		config.GetCertificate = certificates.get
		secure := tls.NewListener(listener, config)
		endpoints = append(endpoints, newEndpoint(secure, newGuard(clients.main, o.metricsHandler())))
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

// tlsConfig returns the settings of connections to /metrics.
func (o *Options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	switch o.TLSMinVersion {
	case "", "VersionTLS12":
	case "VersionTLS13":
		config.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("--config: tls.minVersion: must be VersionTLS12 or VersionTLS13, not %q", o.TLSMinVersion)
	}
	if len(o.TLSCipherSuites) == 0 {
		return config, nil
	}
	if config.MinVersion == tls.VersionTLS13 {
		return nil, errors.New("--config: tls.cipherSuites: must be left out with VersionTLS13, whose cipher suites cannot be chosen")
	}
	suites, err := cliflag.TLSCipherSuites(o.TLSCipherSuites)
	if err != nil {
		return nil, fmt.Errorf("--config: tls.cipherSuites: %w; known are %s", err, strings.Join(cliflag.TLSCipherPossibleValues(), ", "))
	}
	config.CipherSuites = suites
	return config, nil
}

// metricsHandler serves the metrics, and profiles if they are asked for.
func (o *Options) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", legacyregistry.Handler())
	if o.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// healthHandler serves the liveness, which fails for a leader that does not renew its lease, and the readiness, which
// fails until the caches are filled.
func (o *Options) healthHandler(watchdog *leaderelection.HealthzAdaptor, synced func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+o.LivenessEndpoint, func(w http.ResponseWriter, r *http.Request) {
		answer(w, watchdog.Check(r))
	})
	mux.HandleFunc("GET "+o.ReadinessEndpoint, func(w http.ResponseWriter, _ *http.Request) {
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
