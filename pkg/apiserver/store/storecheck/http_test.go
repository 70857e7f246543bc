// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestGate(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.guard(t, store)
	reached := make(chan *http.Request, 1)
	handler := g.WithGate(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		reached <- req
		if isWatch(req) {
			<-req.Context().Done()
		}
	}))
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	refusedPaths := []string{"/apis", "/apis/", "//apis", "/x/../apis/", "/apis/jobset.x-k8s.io/v1alpha2/jobsets?watch=1", "/apis/none",
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets/serverhealth", "/apis/jobset.x-k8s.io/serverhealth", "/apis/x/../../apis/serverhealth"}
	checkGate := func(reason witness.Reason) {
		t.Helper()
		for _, path := range refusedPaths {
			w := ask(path)
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
				t.Fatal(err)
			}
			if w.Code != 503 || status.Code != 503 || status.Kind != "Status" || status.Reason != metav1.StatusReasonServiceUnavailable || w.Header().Get("Retry-After") != "" {
				t.Errorf("%s: code %d, header %v, %+v", path, w.Code, w.Header(), status)
			}
		}
		if g.Reason() != reason || g.Check(nil) == nil || len(reached) > 0 {
			t.Errorf("reason %q, readiness %v; %d requests got through", g.Reason(), g.Check(nil), len(reached))
		}
		for _, path := range []string{"/livez", "/readyz", "/apisomething", "/openapi/v3/apis", "/metrics", "/apis/jobset.x-k8s.io/v1alpha2/serverhealth"} {
			ask(path)
			<-reached
		}
	}
	checkGate(witness.ReasonNotChecked)
	served(t, g)
	for _, path := range []string{"/apis", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"} {
		ask(path)
		<-reached
	}
	ended := make(chan struct{})
	go func() {
		ask("/apis/jobset.x-k8s.io/v1alpha2/jobsets?watch=true")
		close(ended)
	}()
	<-reached
	store.exchange("")
	if err := g.Verify(t.Context()); err == nil {
		t.Error("an empty store is served")
	}
	<-ended
	checkGate(witness.ReasonEmptyStore)
}

// TestGateLetsMigrationsPass: objects of custom resources can be imported while the store is refused because of them, and
// only then.
func TestGateLetsMigrationsPass(t *testing.T) {
	t.Parallel()
	main := newMain()
	main.definitions = []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}
	g := main.guard(t, newMember(t))
	handler := g.WithGate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	check := func(passed ...string) {
		t.Helper()
		for _, path := range []string{
			"/apis/migration.jobset-apiserver.io", "/apis/migration.jobset-apiserver.io/v1alpha1/imports",
			"/apis/migration.jobset-apiserver.io/../jobset.x-k8s.io/v1alpha2/jobsets", "/apis/migration.jobset-apiserver.iox", "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
		} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
			if got := w.Code == http.StatusTeapot; got != slices.Contains(passed, path) {
				t.Errorf("%s: %s answers %d", g.Reason(), path, w.Code)
			}
		}
	}
	check()
	main.refused(t, g, witness.ReasonCustomResources)
	check("/apis/migration.jobset-apiserver.io", "/apis/migration.jobset-apiserver.io/v1alpha1/imports")
}
