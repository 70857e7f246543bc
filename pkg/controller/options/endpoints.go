// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/tools/leaderelection"
)

const (
	readHeaderTimeout = 10 * time.Second
	closeTimeout      = 3 * time.Second
)

// endpoint is an HTTP server whose port is open already, so that a port in use is found before any work begins.
type endpoint struct {
	listener net.Listener
	handler  http.Handler
	// start serves until the channel is closed; the first channel that it returns is closed when all requests have ended.
	start func(handler http.Handler, closeTimeout time.Duration, stop <-chan struct{}) (<-chan struct{}, <-chan struct{}, error)
}

// listen opens the ports of the endpoints that are switched on.
func (o *Options) listen(clients clients, watchdog *leaderelection.HealthzAdaptor, ready func() error) ([]endpoint, error) {
	var endpoints []endpoint
	if o.HealthBindAddress != disabledAddress {
		listener, err := o.open("health-probe-bind-address", o.HealthBindAddress)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint{listener, o.healthHandler(watchdog, ready), servePlain(listener)})
	}
	if o.MetricsBindAddress != disabledAddress {
		listener, err := o.open("metrics-bind-address", o.MetricsBindAddress)
		if err != nil {
			return nil, err
		}
		serving, err := o.secureServing(listener)
		if err != nil {
			return nil, err
		}
		handler, err := guard(serving, clients.main, o.metricsHandler())
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint{listener, handler, serving.Serve})
	}
	return endpoints, nil
}

func (o *Options) open(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, o.flagError(flag, "%w; choose a free address, or 0 to switch it off", err)
	}
	return listener, nil
}

// serve answers requests until the context ends.
func (e endpoint) serve(ctx context.Context) error {
	stopped, _, err := e.start(e.handler, closeTimeout, ctx.Done())
	if err != nil {
		return fmt.Errorf("serving on %s: %w", e.listener.Addr(), err)
	}
	<-stopped
	return nil
}

// servePlain serves HTTP without TLS on a listener.
func servePlain(listener net.Listener) func(http.Handler, time.Duration, <-chan struct{}) (<-chan struct{}, <-chan struct{}, error) {
	return func(handler http.Handler, closeTimeout time.Duration, stop <-chan struct{}) (<-chan struct{}, <-chan struct{}, error) {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
		return genericserver.RunServer(server, listener, closeTimeout, stop)
	}
}

// healthHandler serves the liveness, which fails for a leader that does not renew its lease, and the readiness, which
// fails until the controllers can work.
func (o *Options) healthHandler(watchdog *leaderelection.HealthzAdaptor, ready func() error) http.Handler {
	paths := mux.NewPathRecorderMux("health")
	healthz.InstallPathHandler(paths, o.LivenessEndpoint, watchdog)
	healthz.InstallPathHandler(paths, o.ReadinessEndpoint, healthz.NamedCheck("informer-sync", func(*http.Request) error { return ready() }))
	return paths
}
