// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	genericserver "k8s.io/apiserver/pkg/server"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
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

// TestPodsAreCompletedWhateverTheServerRefuses has every other filter refuse what it gets, as they do while the store is refused, while no
// token is known, and before the server is ready.
func TestPodsAreCompletedWhateverTheServerRefuses(t *testing.T) {
	refuse := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	}
	config := newConfig(t)
	config.Generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return refuse(api) }
	config.Filters = apiserver.Filters{
		StoreCheck: refuse, Tokens: refuse, Channel: refuse, Space: refuse, Migration: refuse, Routing: refuse,
		Webhooks: func(next http.Handler) http.Handler {
			return webhook.NewHandler(next, webhook.Callers{}, apigroups.Webhooks()...)
		},
	}
	config.Complete()
	handler := config.Generic.BuildHandlerChainFunc(refuse(nil), &config.Generic.Config)
	const question = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"default",
		"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a-1",
		"labels":{"leaderworkerset.sigs.k8s.io/name":"a","leaderworkerset.sigs.k8s.io/worker-index":"0"},"annotations":{"leaderworkerset.sigs.k8s.io/size":"4"}},
		"spec":{"subdomain":"a","containers":[{"name":"main","image":"image"}]}}}}`
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, apigroups.PodsPath, strings.NewReader(question))
	req.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(w, req)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"patchType":"JSONPatch"`) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// TestGroupsThatAreSwitchedOffAreUnavailable asks for a group that is not served: the garbage collector takes a 404 for the deletion of an owner.
func TestGroupsThatAreSwitchedOffAreUnavailable(t *testing.T) {
	config := newConfig(t)
	config.Generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return api }
	config.Generic.MergedResourceConfig = config.APIGroups.Enabled()
	config.Generic.MergedResourceConfig.DisableVersions(leaderworkersetv1.SchemeGroupVersion)
	config.Complete()
	handler := config.Generic.BuildHandlerChainFunc(http.NotFoundHandler(), &config.Generic.Config)
	for path, want := range map[string]int{
		"/apis/leaderworkerset.x-k8s.io/v1":                                            http.StatusServiceUnavailable,
		"/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets/a":      http.StatusServiceUnavailable,
		"//apis/leaderworkerset.x-k8s.io//v1/namespaces/default/leaderworkersets/a":    http.StatusServiceUnavailable,
		"/apis/leaderworkerset.x-k8s.io":                                               http.StatusNotFound,
		"/apis/leaderworkerset.x-k8s.io/v2/namespaces/default/leaderworkersets/a":      http.StatusNotFound,
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/a":                  http.StatusNotFound,
		"/namespaces/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/jobsets/a":    http.StatusNotFound,
		"/apis/batch.jobset-apiserver.io/v1alpha1/namespaces/default/sequentialjobs/a": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
		const message = "leaderworkerset.x-k8s.io/v1 is switched off in this server: delete its APIService, or switch it on with --runtime-config and --feature-gates"
		if want == http.StatusServiceUnavailable && !strings.Contains(w.Body.String(), message) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// TestResourcesThatAreSwitchedOffAreUnavailable: the same holds for one resource of a group that is served.
func TestResourcesThatAreSwitchedOffAreUnavailable(t *testing.T) {
	config := newConfig(t)
	config.Generic.BuildHandlerChainFunc = func(api http.Handler, _ *genericserver.Config) http.Handler { return api }
	config.Generic.MergedResourceConfig = config.APIGroups.Enabled()
	config.Generic.MergedResourceConfig.DisableResources(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs"))
	config.Complete()
	handler := config.Generic.BuildHandlerChainFunc(http.NotFoundHandler(), &config.Generic.Config)
	const group = "/apis/batch.jobset-apiserver.io/v1alpha1"
	for path, want := range map[string]int{
		group + "/namespaces/default/sequentialjobs/a":        http.StatusServiceUnavailable,
		group + "/namespaces/default/sequentialjobs/a/status": http.StatusServiceUnavailable,
		group + "/namespaces/default/sequentialjobs":          http.StatusServiceUnavailable,
		group + "/sequentialjobs":                             http.StatusServiceUnavailable,
		group + "/watch/sequentialjobs":                       http.StatusServiceUnavailable,
		group + "/watch/namespaces/default/sequentialjobs/a":  http.StatusServiceUnavailable,
		"/" + group + "/./namespaces/default//sequentialjobs": http.StatusServiceUnavailable,
		group:                   http.StatusNotFound, // the next handler has the documents of the group
		group + "/featuregates": http.StatusOK,
		group + "/namespaces/default/podreadinessgroups/a":                         http.StatusNotFound,
		group + "/namespaces/sequentialjobs/podreadinessgroups/a":                  http.StatusNotFound,
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/sequentialjobs": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
		const message = "sequentialjobs of batch.jobset-apiserver.io/v1alpha1 are switched off in this server: switch them on with --runtime-config"
		if want == http.StatusServiceUnavailable && !strings.Contains(w.Body.String(), message) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}
