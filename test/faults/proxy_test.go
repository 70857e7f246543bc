// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// proxy passes the requests of controllers on to kube-apiserver, with the credentials that they carry, and lets a test
// break them.
type proxy struct {
	kubeconfig string

	mu        sync.Mutex
	intercept interceptor
}

// interceptor answers a request, with or without passing it on.
type interceptor func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// newProxy starts a proxy to the kube-apiserver of the shared cluster.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	target, err := url.Parse(shared.REST.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: shared.REST.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: shared.REST.CAData, CAFile: shared.REST.CAFile,
	}})
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &proxy{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if intercept := p.interceptor(); intercept != nil {
			intercept(w, r, pass)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.kubeconfig = writeKubeconfig(t, server)
	return p
}

// writeKubeconfig writes the controller's kubeconfig with the address of the proxy.
func writeKubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(shared.Dir, "controller.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server.URL
		cluster.CertificateAuthority = ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// use makes the interceptor see all requests from now on; nil lets them pass.
func (p *proxy) use(intercept interceptor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = intercept
}

func (p *proxy) interceptor() interceptor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.intercept
}

// changes reports whether a request changes a set or its children. Leases, events and reviews are something else.
func changes(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	for _, other := range []string{"/apis/coordination.k8s.io/", "/apis/events.k8s.io/", "/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"} {
		if strings.HasPrefix(r.URL.Path, other) {
			return false
		}
	}
	return true
}

// passUnheard passes a request on and keeps the answer. What was asked for is done even if the client is gone.
func passUnheard(r *http.Request, pass http.Handler) {
	defer func() {
		if lost := recover(); lost != nil && lost != http.ErrAbortHandler {
			panic(lost)
		}
	}()
	pass.ServeHTTP(httptest.NewRecorder(), r)
}

// loseAnswer breaks the connection instead of answering.
func loseAnswer() { panic(http.ErrAbortHandler) }
