// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// start starts a server on a free port, and returns the settings of TLS of a server.
func start(t *testing.T) (*Server, *tls.Config) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s := Start(listener.(*net.TCPListener), config)
	t.Cleanup(s.Close)
	return s, config
}

func client() *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // as the kubelet does
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, s *Server, path string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.listener.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func TestWaitingServerSaysWhatItWaitsFor(t *testing.T) {
	s, _ := start(t)
	s.Wait(t.Context(), "the API server at https://10.0.0.1:443", errors.New("dial tcp 10.0.0.1:443:\n\tconnection refused"))
	since := s.since.UTC().Format(time.RFC3339)
	why := "jobset-apiserver has been waiting for the API server at https://10.0.0.1:443 since " + since + ": dial tcp 10.0.0.1:443: connection refused"
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/livez":                           {http.StatusOK, "ok"},
		"/livez/ping":                      {http.StatusOK, "ok"},
		"/healthz":                         {http.StatusOK, "ok"},
		"/readyz":                          {http.StatusServiceUnavailable, "[-]start failed: " + why + "\n"},
		"/readyz?verbose":                  {http.StatusServiceUnavailable, "[-]start failed: " + why + "\n"},
		"/apis":                            {http.StatusServiceUnavailable, ""},
		"/apis/jobset.x-k8s.io/v1alpha2/x": {http.StatusServiceUnavailable, ""},
		"/metrics":                         {http.StatusServiceUnavailable, ""},
	} {
		code, body := get(t, client(), s, path)
		if code != want.code || want.body != "" && body != want.body {
			t.Errorf("%s: %d %q, want %d %q", path, code, body, want.code, want.body)
		}
		if want.body != "" {
			continue
		}
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || status.Reason != metav1.StatusReasonServiceUnavailable || status.Message != why {
			t.Errorf("%s: %v, %q", path, err, body)
		}
	}
	s.Proceed(t.Context())
	if _, body := get(t, client(), s, "/readyz"); body != "[-]start failed: jobset-apiserver is starting\n" {
		t.Errorf("after the wait: %q", body)
	}
}

// TestPortIsNeverClosed asks without a pause, while the server that follows takes over.
func TestPortIsNeverClosed(t *testing.T) {
	s, config := start(t)
	follows := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }),
		ReadHeaderTimeout: requestTimeout,
	}
	t.Cleanup(func() { follows.Close() })
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for c := client(); ; {
				code, body := get(t, c, s, "/apis")
				switch {
				case code == http.StatusOK && body == "served":
					return
				case code != http.StatusServiceUnavailable:
					t.Errorf("%d: %s", code, body)
					return
				}
			}
		})
	}
	if code, _ := get(t, client(), s, "/livez"); code != http.StatusOK {
		t.Error(code)
	}
	go func() { _ = follows.Serve(tls.NewListener(s.Listener(), config)) }()
	asking.Wait()
}

func TestWaitIsLoggedEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		ctx := klog.NewContext(context.Background(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		s := &Server{clock: clock.RealClock{}}
		for range 65 {
			s.Wait(ctx, "one", errors.New("refused"))
			time.Sleep(time.Second)
		}
		s.Wait(ctx, "another", errors.New("refused"))
		time.Sleep(time.Second)
		s.Proceed(ctx)
		s.Proceed(ctx)
		want := []string{"one", "one", "one", "another", "The wait is over"}
		if len(lines) != len(want) {
			t.Fatalf("%d lines: %q", len(lines), lines)
		}
		for i, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("line %d is %s, not about %q", i, lines[i], text)
			}
		}
	})
}

func TestNoServerWaitsForNothing(t *testing.T) {
	var s *Server
	s.Wait(t.Context(), "anything", errors.New("refused"))
	s.Proceed(t.Context())
	s.Close()
}
