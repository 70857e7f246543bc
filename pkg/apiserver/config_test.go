// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/payload"
)

// Every request of the server passes the bounds, whatever the chain of handlers is.
func TestServerBoundsBodies(t *testing.T) {
	scheme, codecs := apiserver.NewScheme()
	generic := genericserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ExternalAddress = "localhost:443"
	generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return api }
	config := &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs}
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
