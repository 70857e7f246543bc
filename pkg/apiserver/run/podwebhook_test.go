// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// podQuestion is what kube-apiserver asks about the leader of a group.
const podQuestion = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"default",
	"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"sample-1",
	"labels":{"leaderworkerset.sigs.k8s.io/name":"sample","leaderworkerset.sigs.k8s.io/worker-index":"0"},"annotations":{"leaderworkerset.sigs.k8s.io/size":"4"}},
	"spec":{"subdomain":"sample","containers":[{"name":"main","image":"image"}]}}}}`

// waitingServer is a server that waits for etcd, with a self-signed certificate.
func waitingServer(t *testing.T, names ...string) (*run, string) {
	t.Helper()
	r := &run{Options: &options.Options{
		Recommended: genericoptions.NewRecommendedOptions(options.EtcdPrefix, nil), Storage: options.NewStorageOptions(), SANs: []string{"localhost"},
		PodWebhookClientNames: names,
	}}
	r.Recommended.SecureServing.ServerCert.CertDirectory = t.TempDir()
	if err := r.applySelfSigned(t.Context()); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if r.wait.Startup, err = r.startWaiting(listener); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.wait.Startup.Close)
	r.wait.Startup.Wait(t.Context(), "etcd", errors.New("connection refused"))
	return r, "https://" + listener.Addr().String()
}

// askWaiting asks about a pod, with a client certificate if there is one.
func askWaiting(t *testing.T, address string, certificates ...tls.Certificate) (code int, body string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: certificates} //nolint:gosec // the names of the certificate are tested elsewhere
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	response, err := client.Post(address+apigroups.PodsPath, "application/json", strings.NewReader(podQuestion))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// completes returns whether the answer changes the pod.
func completes(code int, body string) bool {
	answer := &admissionv1.AdmissionReview{}
	err := json.Unmarshal([]byte(body), answer)
	return err == nil && code == http.StatusOK && answer.Response != nil && answer.Response.Allowed && len(answer.Response.Patch) > 0
}

func TestWaitingServerCompletesPods(t *testing.T) {
	_, address := waitingServer(t)
	if code, body := askWaiting(t, address); !completes(code, body) {
		t.Errorf("%d: %s", code, body)
	}
}

// TestWaitingServerKnowsKubeAPIServer has the server require a client certificate while it waits.
func TestWaitingServerKnowsKubeAPIServer(t *testing.T) {
	ca, err := authority.New(certutil.Config{CommonName: "clients"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	r, address := waitingServer(t, "kube-apiserver")
	known, other := clientCertificate(t, ca, "kube-apiserver"), clientCertificate(t, ca, "another")
	if code, body := askWaiting(t, address, known); code != http.StatusUnauthorized {
		t.Errorf("before the authorities are known: %d: %s", code, body)
	}
	r.Recommended.Authentication.ClientCert.ClientCA = filepath.Join(t.TempDir(), "ca.crt")
	certificate, _, err := ca.PEM()
	if err = errors.Join(err, os.WriteFile(r.Recommended.Authentication.ClientCert.ClientCA, certificate, 0o600)); err != nil {
		t.Fatal(err)
	}
	trusted, err := callers.TrustedAuthorities(r.Recommended.Authentication, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.pods.trust(trusted)
	if code, body := askWaiting(t, address, known); !completes(code, body) {
		t.Errorf("with the certificate of kube-apiserver: %d: %s", code, body)
	}
	if code, body := askWaiting(t, address, other); code != http.StatusUnauthorized {
		t.Errorf("with the certificate of another client: %d: %s", code, body)
	}
	if code, body := askWaiting(t, address); code != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d: %s", code, body)
	}
}

// newAuthority returns the certificate of a new authority as PEM.
func newAuthority(t *testing.T) string {
	t.Helper()
	ca, err := authority.New(certutil.Config{CommonName: "authority"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// clientCertificate returns a client certificate with its key.
func clientCertificate(t *testing.T, ca *authority.Pair, name string) tls.Certificate {
	t.Helper()
	pair, err := ca.Issue(certutil.Config{CommonName: name, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := pair.PEM()
	if err != nil {
		t.Fatal(err)
	}
	made, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
