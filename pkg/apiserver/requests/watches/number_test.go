// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

// TestNumberOfWatches begins watches until there are too many of one user, and then of all users.
func TestNumberOfWatches(t *testing.T) {
	registerMetrics()
	begun, end := make(chan struct{}), make(chan struct{})
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	h := &handler{
		next:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-end }),
		codecs: serializer.NewCodecFactory(scheme), shared: newBudget(clock.RealClock{}, writeGrace, defaultMemory),
		number:     &number{what: "watches", perUser: 2, total: 3, users: map[string]int{}},
		webSockets: &number{what: "watches over WebSocket", perUser: 1, total: 1, users: map[string]int{}},
	}
	serve := func(verb, name string) *httptest.ResponseRecorder {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb})
		answer := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil)
		if name == "console" {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "websocket")
		}
		h.ServeHTTP(answer, req)
		return answer
	}
	ended := make(chan struct{})
	begin := func(verb, name string) {
		go func() {
			serve(verb, name)
			ended <- struct{}{}
		}()
		<-begun
	}
	refuses := func(name, want string) {
		t.Helper()
		answer := serve("watch", name)
		var status metav1.Status
		if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		if status.Message != want || answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "5" {
			t.Errorf("code %d, retry after %q, message:\n%s\nwant 429, 5 and:\n%s", answer.Code, answer.Header().Get("Retry-After"), status.Message, want)
		}
	}
	begin("watch", "alice")
	begin("watch", "alice")
	refuses("alice", `user "alice" has 2 watches already, which is the most for one user; use fewer, or give the server more memory`)
	begin("list", "alice")
	begin("watch", "bob")
	refuses("bob", `there are 3 watches already, which is the most for the memory of this server; use fewer, or give the server more memory`)
	begin("watch", "console")
	refuses("console", `user "console" has 1 watches over WebSocket already, which is the most for one user; use fewer, or give the server more memory`)
	close(end)
	for range 5 {
		<-ended
	}
	if h.webSockets.all != 0 || h.number.all != 0 || len(h.number.users) != 0 {
		t.Errorf("%d watches of %v are left", h.number.all, h.number.users)
	}
}

// TestNumberFollowsFromTheMemory has the figures of docs/server.md.
func TestNumberFollowsFromTheMemory(t *testing.T) {
	for _, tc := range []struct{ memory, each, perUser, total int }{
		{1 << 30, watchMemory, 6144, 8192}, {2 << 30, watchMemory, 12_288, 16_384}, {4 << 30, watchMemory, 24_576, 32_768}, {2 << 30, webSocketMemory, 318, 426},
	} {
		if n := newNumber("watches", tc.memory, tc.each); n.perUser != tc.perUser || n.total != tc.total {
			t.Errorf("%d bytes, %d each: %d watches of a user and %d in all, want %d and %d", tc.memory, tc.each, n.perUser, n.total, tc.perUser, tc.total)
		}
	}
}
