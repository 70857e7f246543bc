// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubeconfig"
)

// newVersionServer returns the address of a server that says its version, unless the function has answered.
func newVersionServer(t *testing.T, answers func(w http.ResponseWriter) (version bool)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers(w) {
			fmt.Fprintln(w, `{"major":"1","minor":"36"}`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestMainAPIMayStartLater lets the first answers be those of a kube-apiserver that starts.
func TestMainAPIMayStartLater(t *testing.T) {
	for name, first := range map[string]func(http.ResponseWriter){
		"connections are cut":    func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"it does not serve yet":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"it knows no users yet":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"it has no policies yet": func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var questions atomic.Int32
			server := newVersionServer(t, func(w http.ResponseWriter) bool {
				if questions.Add(1) > 3 {
					return true
				}
				first(w)
				return false
			})
			if err := awaitMain(t, server); err != nil {
				t.Errorf("after %d questions: %v", questions.Load(), err)
			}
		})
	}
}

func TestForeignMainAPIIsRejectedImmediately(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	err := awaitMain(t, server.URL)
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Errorf("want an error that names the certificate, got %v", err)
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("want 1 connection, got %d", got)
	}
}

func TestReviewClientHasNoRateLimit(t *testing.T) {
	client, err := NewReviewClient("kubeconfig", kubeconfig.For(t, "http://127.0.0.1:1"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if client.AuthorizationV1().RESTClient().GetRateLimiter() != nil || client.AuthenticationV1().RESTClient().GetRateLimiter() != nil {
		t.Error("questions to the main API wait for a rate limit")
	}
}
