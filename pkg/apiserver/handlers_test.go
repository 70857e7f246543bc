// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
)

// Each filter writes down its name before it passes a request on. The chain of the library stands for authentication and authorization.
func TestRequestsPassFiltersInOrder(t *testing.T) {
	var got []string
	note := func(name string) apiserver.Filter {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				got = append(got, name)
				next.ServeHTTP(w, req)
			})
		}
	}
	config := newConfig(t)
	config.Generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return note("library")(api) }
	config.Filters = apiserver.Filters{
		Leaving: note("leaving"), Webhooks: note("webhooks"), StoreCheck: note("store check"), Tokens: note("tokens"), Channel: note("channel"),
		Space: note("space"),
	}
	config.SelfCheck = note("self-check")(http.NotFoundHandler())
	config.Complete()
	handler := config.Generic.BuildHandlerChainFunc(note("API")(http.NotFoundHandler()), &config.Generic.Config)
	for path, want := range map[string][]string{
		"/apis": {"leaving", "webhooks", "store check", "tokens", "channel", "library", "space", "API"},
		"/apis/jobset.x-k8s.io/v1alpha2/serverhealth": {"leaving", "webhooks", "store check", "tokens", "channel", "library", "space", "self-check"},
		"/apis/jobset.x-k8s.io/v1alpha2/featuregates": {"leaving", "webhooks", "store check", "tokens", "channel", "library", "space"},
	} {
		got = nil
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
