// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var version = schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}

// TestWatches checks which watches end when kube-apiserver has an answer about their group, and then another one.
func TestWatches(t *testing.T) {
	type answer struct {
		routed bool
		err    error
	}
	yes, no, unknown := answer{routed: true}, answer{}, answer{err: errors.New("no connection")}
	for name, tc := range map[string]struct {
		answers []answer
		verb    string
		ends    bool
	}{
		"forwarded":                {[]answer{yes, yes, yes}, "watch", false},
		"never forwarded":          {[]answer{no, no}, "watch", false},
		"not known":                {[]answer{unknown, unknown}, "watch", false},
		"not known any more":       {[]answer{yes, unknown, unknown}, "watch", false},
		"not forwarded any more":   {[]answer{yes, no}, "watch", true},
		"gone after a short doubt": {[]answer{yes, unknown, no}, "watch", true},
		"a list goes on":           {[]answer{yes, no}, "list", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now answer
				w := New(func(context.Context, schema.GroupVersion) (bool, error) { return now.routed, now.err }, nil)
				ended := start(t, w, tc.verb)
				for _, now = range tc.answers {
					w.look(t.Context())
				}
				synctest.Wait()
				if got := *ended; got != tc.ends {
					t.Errorf("the request has ended: %v, want %v", got, tc.ends)
				}
			})
		})
	}
}

// TestLateWatches checks that watches which come after the first round are ended too, and later ones are not.
func TestLateWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routed := true
		w := New(func(context.Context, schema.GroupVersion) (bool, error) { return routed, nil }, nil)
		first := start(t, w, "watch")
		w.look(t.Context())
		routed = false
		for range rounds {
			late := start(t, w, "watch")
			w.look(t.Context())
			if synctest.Wait(); !*first || !*late {
				t.Error("a watch goes on after the group has left")
			}
		}
		direct := start(t, w, "watch")
		w.look(t.Context())
		if synctest.Wait(); *direct {
			t.Error("a watch was ended long after the group has left")
		}
	})
}

// TestWatchesOfALostStore checks that all watches end while the store is lost, and that watches go on when it is back.
func TestWatchesOfALostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := false
		w := New(func(context.Context, schema.GroupVersion) (bool, error) { return true, nil }, func() bool { return lost })
		first := start(t, w, "watch")
		w.look(t.Context())
		if synctest.Wait(); *first {
			t.Error("a watch was ended although the store is there")
		}
		lost = true
		w.look(t.Context())
		if synctest.Wait(); !*first {
			t.Error("a watch goes on although the store is lost")
		}
		lost = false
		second := start(t, w, "watch")
		w.look(t.Context())
		if synctest.Wait(); *second {
			t.Error("a watch was ended although the store is back")
		}
	})
}

// start begins a request that goes on until it is ended, and returns whether it has.
func start(t *testing.T, w *Watches, verb string) *bool {
	t.Helper()
	ended := false
	handler := w.Filter(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		<-req.Context().Done()
		ended = true
	}))
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{Verb: verb, APIGroup: version.Group, APIVersion: version.Version})
	go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	synctest.Wait()
	return &ended
}
