// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	pair := a.sign(t, "authority")
	var err error
	if a.certificate, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	a.key = pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign signs a certificate for clients. Without a key yet, it makes the certificate of the authority itself.
func (a *authority) sign(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: a.key == nil,
	}
	parent, signer := template, key
	if a.key != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestCallers connects with certificates of the authority and of another one.
func TestCallers(t *testing.T) {
	trusted, other := newAuthority(t), newAuthority(t)
	roots := x509.NewCertPool()
	roots.AddCert(trusted.certificate)
	loaded := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	kubeAPIServer, user, impostor := trusted.sign(t, "kube-apiserver"), trusted.sign(t, "user"), other.sign(t, "kube-apiserver")
	cases := map[string]struct {
		callers     Callers
		certificate *tls.Certificate
		code        int
	}{
		"anybody, no certificate":                  {callers: Callers{Authorities: loaded}, code: http.StatusOK},
		"anybody, a certificate of another":        {callers: Callers{Authorities: loaded}, certificate: &impostor, code: http.StatusOK},
		"a name is required, no certificate":       {callers: Callers{Authorities: loaded, Names: []string{"kube-apiserver"}}, code: http.StatusUnauthorized},
		"a name is required, and given":            {callers: Callers{Authorities: loaded, Names: []string{"x", "kube-apiserver"}}, certificate: &kubeAPIServer, code: http.StatusOK},
		"a name is required, another is given":     {callers: Callers{Authorities: loaded, Names: []string{"kube-apiserver"}}, certificate: &user, code: http.StatusUnauthorized},
		"a name is required, signed by another":    {callers: Callers{Authorities: loaded, Names: []string{"kube-apiserver"}}, certificate: &impostor, code: http.StatusUnauthorized},
		"a name is required, and no authority yet": {callers: Callers{Authorities: func() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }, Names: []string{"kube-apiserver"}}, certificate: &kubeAPIServer, code: http.StatusUnauthorized},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(NewHandler(http.NotFoundHandler(), c.callers, Webhook{Path: path, Mutate: labels}))
			server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			defer server.Close()
			transport := server.Client().Transport.(*http.Transport)
			if c.certificate != nil {
				transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate, nil }
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, bytes.NewReader(review(nil)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			response, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.code {
				t.Errorf("answered %d, want %d", response.StatusCode, c.code)
			}
		})
	}
}

// TestKnownCallersHaveTheirOwnTurns shows that others cannot use up the turns of a caller with a certificate.
func TestKnownCallersHaveTheirOwnTurns(t *testing.T) {
	trusted := newAuthority(t)
	pair := trusted.sign(t, "kube-apiserver")
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted.certificate)
	h := newHandler(Callers{Authorities: func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}}, Webhook{Path: path, Mutate: labels})
	for h.queue.Free() > 0 {
		if !h.queue.Enter(0, 1).Wait(t.Context()) {
			t.Fatal(t.Context().Err())
		}
	}
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, bytes.NewReader(review(nil)))
	req.Header.Set("Content-Type", "application/json")
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	h.ServeHTTP(w, req)
	answered(t, w)
}
