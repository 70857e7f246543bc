// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		profiling bool
		want      map[string]int
	}{
		"by default there are metrics only": {false, map[string]int{"/metrics": 200, "/debug/pprof/": 404, "/debug/pprof/heap": 404}},
		"with --profiling":                  {true, map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200}},
	} {
		t.Run(name, func(t *testing.T) {
			handler := (&Options{Profiling: tc.profiling}).metricsHandler()
			got := map[string]int{}
			for path := range tc.want {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				got[path] = w.Code
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestMetricsAccess asks with tokens and client certificates that a main cluster knows and allows.
func TestMetricsAccess(t *testing.T) {
	known, stranger := newAuthority(t), newAuthority(t)
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": string(pemOf(t, known))},
	})
	reviews := 0
	cluster := mainCluster{client, reviewer(t, &reviews)}
	url := serveMetrics(t, &Options{MetricsBindAddress: "127.0.0.1:0"}, cluster)
	poll.Until(t, "the authority of client certificates is loaded", func() bool {
		return get(t, url, "", certificate(t, known, "prometheus")) == http.StatusOK
	})
	for name, tc := range map[string]struct {
		header      string
		certificate *tls.Certificate
		want        int
	}{
		"nobody":                                 {"", nil, 401},
		"a password":                             {"Basic dTpw", nil, 401},
		"an empty token":                         {"Bearer ", nil, 401},
		"a token that is not known":              {"Bearer forged", nil, 401},
		"a token of a user who may not":          {"Bearer somebody", nil, 403},
		"a token of a user who may":              {"Bearer prometheus", nil, 200},
		"a main cluster that refuses the review": {"Bearer outage", nil, 401},
		"a certificate of a user who may":        {"", certificate(t, known, "prometheus"), 200},
		"a certificate of a user who may not":    {"", certificate(t, known, "somebody"), 403},
		"a certificate of another authority":     {"", certificate(t, stranger, "prometheus"), 401},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				if d := cmp.Diff(tc.want, get(t, url, tc.header, tc.certificate)); d != "" {
					t.Errorf("code (-want +got):\n%s", d)
				}
			}
		})
	}
	// Three tokens have an answer that holds for a while; an error does not.
	if d := cmp.Diff(5, reviews); d != "" {
		t.Errorf("number of reviews (-want +got):\n%s", d)
	}
}

// mainCluster is a client of a main cluster whose reviews come from a server.
type mainCluster struct {
	*fake.Clientset
	reviews kubernetes.Interface
}

func (m mainCluster) AuthenticationV1() authenticationclient.AuthenticationV1Interface {
	return m.reviews.AuthenticationV1()
}

func (m mainCluster) AuthorizationV1() authorizationclient.AuthorizationV1Interface {
	return m.reviews.AuthorizationV1()
}

// reviewer returns a client of a server that knows all tokens but one as users of their name, and allows one user to read the metrics.
func reviewer(t *testing.T, tokens *int) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			*tokens++
			var review authenticationv1.TokenReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			if review.Spec.Token == "outage" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			review.Status = authenticationv1.TokenReviewStatus{
				Authenticated: review.Spec.Token != "forged", User: authenticationv1.UserInfo{Username: review.Spec.Token},
			}
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		want := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		review.Status.Allowed = review.Spec.User == "prometheus" && cmp.Equal(want, review.Spec.NonResourceAttributes)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
}

// TestCertificatesAreReadAgain exchanges the files of the certificate.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(host string) {
		cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("first.example")
	url := serveMetrics(t, &Options{MetricsBindAddress: "127.0.0.1:0", MetricsCertDir: dir}, fake.NewClientset())
	if !servedFor(t, url, "first.example") {
		t.Error("the certificate of the files is not served")
	}
	write("second.example")
	poll.Until(t, "the new certificate is served", func() bool { return servedFor(t, url, "second.example") })
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if !servedFor(t, url, "second.example") {
			t.Fatal("the last good certificate is not served while the files are unreadable")
		}
	}
	write("third.example")
	poll.Until(t, "the certificate after a bad one is served", func() bool { return servedFor(t, url, "third.example") })
}

func TestSelfSignedCertificate(t *testing.T) {
	url := serveMetrics(t, &Options{MetricsBindAddress: "127.0.0.1:0"}, fake.NewClientset())
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", host} {
		if !servedFor(t, url, name) {
			t.Errorf("the certificate is not for %s", name)
		}
	}
}

// serveMetrics serves the metrics until the test ends, and returns their URL.
func serveMetrics(t *testing.T, o *Options, client kubernetes.Interface) string {
	t.Helper()
	o.HealthBindAddress = disabledAddress
	endpoints, err := o.listen(clients{main: client}, leaderelection.NewLeaderHealthzAdaptor(time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- endpoints[0].serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "https://" + endpoints[0].listener.Addr().String() + "/metrics"
}

// get returns the code of a request on a connection of its own.
func get(t *testing.T, url, header string, certificate *tls.Certificate) int {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", header)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// servedFor returns whether the certificate at the URL is for the host.
func servedFor(t *testing.T, url, host string) bool {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/metrics")
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].VerifyHostname(host) == nil
}

func newAuthority(t *testing.T) *authority.Pair {
	t.Helper()
	pair, err := authority.New(certutil.Config{CommonName: "authority", NotBefore: time.Now().Add(-time.Minute)}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func pemOf(t *testing.T, pair *authority.Pair) []byte {
	t.Helper()
	cert, _, err := pair.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func certificate(t *testing.T, signer *authority.Pair, user string) *tls.Certificate {
	t.Helper()
	pair, err := signer.Issue(certutil.Config{CommonName: user, NotBefore: time.Now().Add(-time.Minute), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := pair.PEM()
	if err != nil {
		t.Fatal(err)
	}
	result, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &result
}
