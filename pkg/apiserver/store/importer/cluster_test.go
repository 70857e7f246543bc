// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
)

var served = lwsResource.WithVersion("v1")

func thing(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parsed(t, text)}
}

func definition(t testing.TB, versions string) *unstructured.Unstructured {
	return thing(t, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"},
		"spec": {"versions": [`+versions+`]}}`)
}

func apiService(t testing.TB, spec string) *unstructured.Unstructured {
	return thing(t, `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.leaderworkerset.x-k8s.io"}, "spec": {`+spec+`}}`)
}

func clusterOf(t testing.TB, objects ...runtime.Object) *Cluster {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		definitions: "CustomResourceDefinitionList", apiServices: "APIServiceList", served: "LeaderWorkerSetList",
	}, objects...)
	return &Cluster{Client: client, Kinds: newKinds(t)}
}

func TestServed(t *testing.T) {
	const local, both = `"group": "leaderworkerset.x-k8s.io"`, `{"name": "v1beta1", "served": true}, {"name": "v1", "served": true}`
	for name, tc := range map[string]struct {
		objects  []runtime.Object
		want     string
		unserved bool
	}{
		"served": {objects: []runtime.Object{definition(t, both), apiService(t, local)}},
		"no definition": {
			objects: []runtime.Object{apiService(t, local)}, unserved: true,
			want: "the main cluster has no CustomResourceDefinition leaderworkersets.leaderworkerset.x-k8s.io",
		},
		"another version": {
			objects: []runtime.Object{definition(t, `{"name": "v2", "served": true}, {"name": "v1", "served": false}`), apiService(t, local)},
			want:    "CustomResourceDefinition leaderworkersets.leaderworkerset.x-k8s.io must serve version v1, but it serves v2",
		},
		"our server has the group": {
			objects: []runtime.Object{definition(t, both), apiService(t, `"service": {"namespace": "jobset-system", "name": "jobset-apiserver"}`)}, unserved: true,
			want: "APIService v1.leaderworkerset.x-k8s.io must be local, but Service jobset-system/jobset-apiserver serves it: the objects of CustomResourceDefinition leaderworkersets.leaderworkerset.x-k8s.io cannot be read",
		},
		"no APIService": {objects: []runtime.Object{definition(t, both)}, want: `apiservices.apiregistration.k8s.io "v1.leaderworkerset.x-k8s.io" not found`},
	} {
		got, err := clusterOf(t, tc.objects...).Served(t.Context(), lwsResource)
		var unserved *Unserved
		switch {
		case tc.want == "" && (err != nil || got != served):
			t.Errorf("%s: %v, %v", name, got, err)
		case tc.want != "" && (err == nil || err.Error() != tc.want || errors.As(err, &unserved) != tc.unserved):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pages answers a list in two pages. The second expires as often as it is asked to.
type pages struct {
	testing.TB
	expires int
}

func (p *pages) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	if req.URL.Path != "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets" || query.Get("limit") != "50" {
		p.Errorf("asked for %s", req.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	next, items := "next", lws("a", "uid-a", "70")
	if query.Get("continue") != "" {
		next, items = "", lws("b", "uid-b", "71")
		if p.expires--; p.expires >= 0 {
			w.WriteHeader(http.StatusGone)
			status := apierrors.NewResourceExpired("too old").Status()
			status.APIVersion, status.Kind = "v1", "Status"
			_ = json.NewEncoder(w).Encode(status)
			return
		}
	}
	fmt.Fprintf(w, `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSetList", "metadata": {"continue": %q}, "items": [%s]}`, next, items)
}

// TestPages reads a list in pages, one of which may expire a few times.
func TestPages(t *testing.T) {
	for expires, want := range map[int]string{0: "", 1: "", maxStarts: "listing the leaderworkersets.leaderworkerset.x-k8s.io of the main cluster: too old"} {
		f := newFixture(t)
		server := httptest.NewServer(&pages{t, expires})
		defer server.Close()
		client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		c := &Cluster{Client: client, Kinds: f.kinds}
		got := f.run(c.Source([]schema.GroupVersionResource{served}))
		switch {
		case want == "" && (got.err != nil || got.counts[Created] != 2 || len(got.lines) > 0):
			t.Errorf("expires %d times: %+v", expires, got)
		case want != "" && (got.err == nil || got.err.Error() != want || len(f.dump()) > 0):
			t.Errorf("expires %d times: %+v", expires, got)
		}
	}
}
