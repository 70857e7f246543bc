// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/waitgroup"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
)

// TestCrossings sends writes through a proxy like that of kube-apiserver to a server that sends GOAWAY with every
// twentieth response. Some writes fail. Each of them counts as crossed, and the server has not carried out any of them.
func TestCrossings(t *testing.T) {
	const writers, writesEach = 16, 250
	var served atomic.Int64
	var carriedOut sync.Map
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		carriedOut.Store(req.URL.Path, true)
		if served.Add(1)%20 == 0 {
			w.Header().Set("Connection", "close")
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the client of the server has the transport %T", server.Client().Transport)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: transport.TLSClientConfig.Clone()}),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "error trying to reach service: "+err.Error(), http.StatusServiceUnavailable)
		},
	}
	front := httptest.NewServer(proxy)
	defer front.Close()

	r := &recorder{}
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			for i := range writesEach {
				path := fmt.Sprintf("/%d/%d", writer, i)
				if err := post(t.Context(), front.URL+path); err != nil {
					r.mu.Lock()
					r.fail(err)
					r.mu.Unlock()
					if _, found := carriedOut.Load(path); found {
						t.Errorf("the write %s was carried out and failed with %q", path, err)
					}
				}
			}
		})
	}
	wg.Wait()
	seen := r.operation()
	t.Logf("%d of %d writes failed: %v", seen.Failures, writers*writesEach, seen.Errors)
	if seen.Failures == 0 {
		t.Error("no write met a GOAWAY")
	}
	if seen.Crossed != seen.Failures {
		t.Errorf("%d of %d failures count as crossed, must be all: %v", seen.Crossed, seen.Failures, seen.Errors)
	}
}

// post writes through the proxy, and returns the text of the answer as an error unless it succeeded.
func post(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(strings.Repeat("x", 2048)))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", text)
	}
	return nil
}

// TestRefusals sends a write to a server whose shutdown delay is over, as the library refuses it: with a time after which to
// try again, and without carrying it out.
func TestRefusals(t *testing.T) {
	ended := &waitgroup.SafeWaitGroup{}
	ended.Wait()
	reached := false
	server := filters.WithWaitGroup(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }),
		func(*http.Request, *apirequest.RequestInfo) bool { return false }, ended)
	req := httptest.NewRequestWithContext(apirequest.WithRequestInfo(t.Context(), &apirequest.RequestInfo{}), http.MethodPost, "/", nil)
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, req)

	r := &recorder{}
	r.fail(fmt.Errorf("%s", answer.Body))
	if seen := r.operation(); seen.Refused != 1 || seen.Crossed != 0 || answer.Header().Get("Retry-After") == "" || reached {
		t.Errorf("carried out: %t, header %v, seen %+v", reached, answer.Header(), seen)
	}
}
