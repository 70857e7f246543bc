// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	certutil "k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// TestExpiredFrontProxies asks the authenticator of the library with certificates that are not valid, and what the log says about it.
func TestExpiredFrontProxies(t *testing.T) {
	now := time.Now()
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		authorityEnds, proxyEnds time.Time
		// published is whether the authority is in the ConfigMap; kube-apiserver leaves expired ones out.
		published bool
		wantOK    bool
		want      string
	}{
		"both are valid":              {authorityEnds: hour(1), proxyEnds: hour(1), published: true, wantOK: true},
		"the certificate has expired": {authorityEnds: hour(1), proxyEnds: hour(-1), published: true, want: "the certificate of the front proxy is valid from "},
		"the authority has expired":   {authorityEnds: hour(-1), proxyEnds: hour(1), published: true, want: "the authority of front proxies is valid from "},
		"no authority is published":   {authorityEnds: hour(-1), proxyEnds: hour(1), want: "no authority of front proxies is known"},
	} {
		t.Run(name, func(t *testing.T) {
			ca, err := authority.New(certutil.Config{CommonName: "front-proxy", NotBefore: hour(-3)}, c.authorityEnds)
			if err != nil {
				t.Fatal(err)
			}
			proxy, err := ca.Issue(certutil.Config{CommonName: "front-proxy-client", NotBefore: hour(-2), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, c.proxyEnds)
			if err != nil {
				t.Fatal(err)
			}
			var bundle []byte
			if c.published {
				if bundle, _, err = ca.PEM(); err != nil {
					t.Fatal(err)
				}
			}
			verify := func() (x509.VerifyOptions, bool) {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM(bundle)
				return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
			}
			user := headerrequest.StaticStringSlice{"X-Remote-User"}
			none := headerrequest.StaticStringSlice{}
			next := headerrequest.NewDynamicVerifyOptionsSecure(verify, none, user, none, none, none)
			e := &Expiry{Next: next, Headers: user.Value, Authority: func() []byte { return bundle }, Clock: clocktesting.NewFakePassiveClock(now)}
			req := &http.Request{Header: http.Header{"X-Remote-User": {"carol"}}, TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{proxy.Certificate}}}
			response, ok, err := e.AuthenticateRequest(req)
			if ok != c.wantOK || ok && response.User.GetName() != "carol" {
				t.Errorf("believed: %t, %v", ok, err)
			}
			if got := invalidAt(now, proxy.Certificate, bundle); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") || (got != "") != e.reported.Equal(now) {
				t.Errorf("got %q (logged at %s), want %q", got, e.reported, c.want)
			}
		})
	}
}

// TestRequestsOfOthersAreNotReported has a client without the headers of front proxies fail.
func TestRequestsOfOthersAreNotReported(t *testing.T) {
	next := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	e := &Expiry{Next: next, Headers: func() []string { return []string{"X-Remote-User"} }, Authority: func() []byte { return nil }, Clock: clocktesting.NewFakePassiveClock(time.Now())}
	for _, req := range []*http.Request{
		{Header: http.Header{"X-Remote-User": {"carol"}}},
		{Header: http.Header{}, TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}},
	} {
		if _, _, err := e.AuthenticateRequest(req); err != nil || !e.reported.IsZero() {
			t.Errorf("%v, logged at %s", err, e.reported)
		}
	}
}
