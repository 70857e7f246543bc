// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	certutil "k8s.io/client-go/util/cert"
)

func TestHealthEndpoints(t *testing.T) {
	synced := false
	o := &Options{ReadinessEndpoint: "/readyz", LivenessEndpoint: "/healthz"}
	handler := o.healthHandler(leaderelection.NewLeaderHealthzAdaptor(time.Second), func() bool { return synced })
	code := func(path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	want := map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 404}
	for path := range want {
		if d := cmp.Diff(want[path], code(path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
	synced = true
	if d := cmp.Diff(200, code("/readyz")); d != "" {
		t.Errorf("/readyz with filled caches (-want +got):\n%s", d)
	}
}

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

// TestMetricsAreGuarded asks with tokens that a main API knows and allows.
func TestMetricsAreGuarded(t *testing.T) {
	client := fake.NewClientset()
	reviews := 0
	client.PrependReactor("create", "tokenreviews", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		reviews++
		review := action.(clientgotesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if review.Spec.Token == "outage" {
			return true, nil, errors.New("no connection")
		}
		review.Status.Authenticated = review.Spec.Token != "forged"
		review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"}}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		review := action.(clientgotesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		want := authorizationv1.SubjectAccessReviewSpec{
			User: review.Spec.User, Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}
		if d := cmp.Diff(want, review.Spec); d != "" {
			t.Errorf("question (-want +got):\n%s", d)
		}
		review.Status.Allowed = review.Spec.User == "prometheus"
		return true, review, nil
	})
	guard := newGuard(client, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "numbers") }))
	for name, tc := range map[string]struct {
		header string
		want   int
	}{
		"nobody":                          {"", 401},
		"a password":                      {"Basic dTpw", 401},
		"an empty token":                  {"Bearer ", 401},
		"a token that is not known":       {"Bearer forged", 401},
		"a user who may not":              {"Bearer somebody", 403},
		"a user who may":                  {"Bearer prometheus", 200},
		"a main API that does not answer": {"Bearer outage", 500},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Authorization", tc.header)
				guard.ServeHTTP(w, r)
				if d := cmp.Diff(tc.want, w.Code); d != "" {
					t.Errorf("code (-want +got):\n%s", d)
				}
				if w.Code != 200 && w.Body.String() == "numbers" {
					t.Error("the numbers were served")
				}
			}
		})
	}
	// Three tokens have an answer that holds for a while; an outage has none.
	if d := cmp.Diff(5, reviews); d != "" {
		t.Errorf("number of reviews (-want +got):\n%s", d)
	}
}

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
	serves := func(c *certificates, host string) bool {
		pair, err := c.get(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.VerifyHostname(host) == nil
	}
	write("first.example")
	c, err := newCertificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	write("second.example")
	if !serves(c, "first.example") {
		t.Error("the certificate of a moment ago is not served")
	}
	c.read = c.read.Add(-reloadAfter)
	if !serves(c, "second.example") {
		t.Error("the new certificate is not served")
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.read = c.read.Add(-reloadAfter)
	if !serves(c, "second.example") {
		t.Error("the last good certificate is not served while the files are unreadable")
	}
	made, err := newCertificates("")
	if err != nil {
		t.Fatal(err)
	}
	if !serves(made, "localhost") {
		t.Error("the made-up certificate is not for localhost")
	}
}
