// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"sync/atomic"

	clientx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
)

// podWebhook answers kube-apiserver's questions about pods, from the first moment of the process: while the server waits, while it refuses
// its store, and while it serves. The Service that kube-apiserver uses for them has the addresses of pods that are not ready, too.
type podWebhook struct {
	// authorities are the authorities of client certificates; nil until they are known.
	authorities atomic.Pointer[clientAuthorities]
}

// clientAuthorities are the authorities of client certificates as they were found at the start, and as the library follows them.
type clientAuthorities struct {
	found   callers.Authorities
	options x509.VerifyOptions
	follows dynamiccertificates.CAContentProvider
	loaded  atomic.Bool
}

// trust uses the authorities that were found at the start, until follow has others.
func (p *podWebhook) trust(found callers.Authorities) {
	authorities := &clientAuthorities{found: found, options: clientx509.DefaultVerifyOptions()}
	authorities.options.Roots = x509.NewCertPool()
	authorities.options.Roots.AppendCertsFromPEM(found.Client)
	authorities.options.Roots.AppendCertsFromPEM(found.RequestHeader)
	p.authorities.Store(authorities)
}

// follow uses the authorities that the library follows, as soon as it has loaded those that were found at the start: it loads them after
// it has begun to serve.
func (p *podWebhook) follow(current dynamiccertificates.CAContentProvider) {
	next := &clientAuthorities{follows: current}
	if found := p.authorities.Load(); found != nil {
		next.found, next.options = found.found, found.options
	}
	p.authorities.Store(next)
}

// verifyOptions returns how client certificates are verified; ok is false as long as no authority is known.
func (p *podWebhook) verifyOptions() (options x509.VerifyOptions, ok bool) {
	authorities := p.authorities.Load()
	switch {
	case authorities == nil:
		return options, false
	case authorities.follows != nil && authorities.isLoaded():
		return authorities.follows.VerifyOptions()
	}
	return authorities.options, authorities.options.Roots != nil
}

func (a *clientAuthorities) isLoaded() bool {
	if a.loaded.Load() {
		return true
	}
	current := a.follows.CurrentCABundleContent()
	for _, wanted := range [][]byte{a.found.Client, a.found.RequestHeader} {
		if !bytes.Contains(current, bytes.TrimSpace(wanted)) {
			return false
		}
	}
	a.loaded.Store(true)
	return true
}

// handler answers the questions, and passes on other requests.
func (p *podWebhook) handler(next http.Handler, names []string) http.Handler {
	return webhook.NewHandler(next, webhook.Callers{Names: names, Authorities: p.verifyOptions}, apigroups.Webhooks()...)
}
