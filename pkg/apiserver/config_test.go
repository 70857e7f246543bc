// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// newConfig returns a configuration without storage, whose chain of handlers is the API alone.
func newConfig(t *testing.T) *apiserver.Config {
	t.Helper()
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	scheme, codecs := apiserver.NewScheme()
	generic := genericserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ExternalAddress = "localhost:443"
	generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return api }
	return &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs, APIGroups: apigroups.All(), Gates: gate}
}

// Every request of the server passes the bounds, whatever the chain of handlers is.
func TestServerBoundsBodies(t *testing.T) {
	config := newConfig(t)
	generic := config.Generic
	config.Complete()
	if generic.MaxRequestBodyBytes != payload.MaxBytes {
		t.Errorf("bodies of %d bytes are read, want %d", generic.MaxRequestBodyBytes, payload.MaxBytes)
	}
	handler := generic.BuildHandlerChainFunc(http.NotFoundHandler(), &generic.Config)
	for body, want := range map[string]int{"{}": http.StatusNotFound, strings.Repeat("[", 200): http.StatusRequestEntityTooLarge} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%d for a body of %d bytes, want %d", w.Code, len(body), want)
		}
	}
}

func TestServedFeatureGates(t *testing.T) {
	config := newConfig(t)
	if err := config.Gates.(featuregate.MutableFeatureGate).Set("RestartJob=true"); err != nil {
		t.Fatal(err)
	}
	config.Complete()
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	handler := config.Generic.BuildHandlerChainFunc(next, &config.Generic.Config)
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	const path = "/apis/jobset.x-k8s.io/v1alpha2/featuregates"
	w := get(http.MethodGet, path)
	var got struct {
		FeatureGates gates.Gates
		Version      string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%s %q: %v", w.Header().Get("Content-Type"), w.Body, err)
	}
	if want := version.Get().GitVersion; got.Version != want {
		t.Errorf("version: got %q, want %q", got.Version, want)
	}
	if want := (gates.Gates{RestartJob: true, RestartOnFailureTarget: true, ExclusivePlacement: true}); got.FeatureGates != want {
		t.Errorf("got %+v, want %+v", got.FeatureGates, want)
	}
	for _, other := range [][2]string{{http.MethodPost, path}, {http.MethodGet, path + "/x"}, {http.MethodGet, "/apis/jobset.x-k8s.io/v1alpha2/jobsets"}} {
		if w := get(other[0], other[1]); w.Code != http.StatusTeapot {
			t.Errorf("%v is answered with %d, not by the API", other, w.Code)
		}
	}
}
