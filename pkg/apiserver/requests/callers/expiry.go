// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// expiryReport is how often the log says that the certificates of front proxies are not valid.
const expiryReport = 30 * time.Second

// Expiry says in the log why requests of front proxies are rejected when their certificate, or its authority, is not
// valid at this time. Clients of kube-apiserver see 401 then, as if their own credentials were wrong.
type Expiry struct {
	Next authenticator.Request
	// Headers are the headers in which front proxies name the user, and Authority is the bundle that is trusted.
	Headers   func() []string
	Authority func() []byte
	Clock     clock.PassiveClock

	mu       sync.Mutex
	reported time.Time
}

// AuthenticateRequest implements authenticator.Request.
func (e *Expiry) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := e.Next.AuthenticateRequest(req)
	if !ok && req.TLS != nil && len(req.TLS.PeerCertificates) > 0 &&
		slices.ContainsFunc(e.Headers(), func(h string) bool { return req.Header.Get(h) != "" }) {
		e.report(req.TLS.PeerCertificates[0])
	}
	return response, ok, err
}

func (e *Expiry) report(proxy *x509.Certificate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Clock.Now()
	if now.Sub(e.reported) < expiryReport {
		return
	}
	if reason := invalidAt(now, proxy, e.Authority()); reason != "" {
		e.reported = now
		klog.Background().Error(nil, "Requests that kube-apiserver forwards are rejected with 401, and their clients see Unauthorized", "reason",
			reason)
	}
}

// invalidAt returns why no request of a front proxy is accepted at a time; it is empty if neither its certificate nor
// the authority is the reason.
func invalidAt(now time.Time, proxy *x509.Certificate, bundle []byte) string {
	const format = "%s is valid from %s to %s, and the clock of this server says %s: renew %s, or correct the clock"
	describe := func(what string, cert *x509.Certificate, flag string) string {
		return fmt.Sprintf(format, what, cert.NotBefore.UTC().Format(time.RFC3339), cert.NotAfter.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339), flag)
	}
	invalid := func(cert *x509.Certificate) bool { return now.Before(cert.NotBefore) || now.After(cert.NotAfter) }
	authorities, err := certutil.ParseCertsPEM(bundle)
	switch {
	case err != nil:
		return "no authority of front proxies is known: kube-apiserver publishes none that has expired: renew the file in its " +
			"--requestheader-client-ca-file"
	case !slices.ContainsFunc(authorities, func(cert *x509.Certificate) bool { return !invalid(cert) }):
		return describe("the authority of front proxies", authorities[0], "the file in kube-apiserver's --requestheader-client-ca-file")
	case invalid(proxy):
		return describe("the certificate of the front proxy", proxy, "the file in kube-apiserver's --proxy-client-cert-file")
	}
	return ""
}
