// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// faults are what becomes of one request, or, with the last one, also of those like it until the command has ended: what waits for
// an answer does so until its time is over.
var faults = []string{"an error 500", "an error 503", "a connection that ends before", "a connection that ends after", "a long delay", forGood}

const forGood = "errors from then on"

// faulty is a proxy of kube-apiserver that spoils a request.
type faulty struct {
	kubeconfig string
	requests   atomic.Int64
	// at is the number of the request, and fault what becomes of it.
	at    atomic.Int64
	fault atomic.Pointer[string]
	// hit describes the request.
	hit atomic.Pointer[string]
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	transport, err := rest.TransportFor(cluster.REST)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cluster.REST.Host)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(proxy, w, r) }))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["faulty"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["faulty"] = &clientcmdapi.Context{Cluster: "faulty"}
	config.CurrentContext = "faulty"
	if err := clientcmd.WriteToFile(*config, f.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *faulty) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	request, fault := r.Method+" "+r.URL.Path, *f.fault.Load()
	hit := f.hit.Load()
	if f.requests.Add(1) != f.at.Load() && (fault != forGood || hit == nil || *hit != request) {
		proxy.ServeHTTP(w, r)
		return
	}
	f.hit.Store(&request)
	switch fault {
	case "an error 500":
		http.Error(w, "spoiled", http.StatusInternalServerError)
	case "an error 503", forGood:
		http.Error(w, "spoiled", http.StatusServiceUnavailable)
	case "a connection that ends after":
		proxy.ServeHTTP(httptest.NewRecorder(), r) // the server has done it, and the client does not know
		panic(http.ErrAbortHandler)
	case "a long delay":
		time.Sleep(20 * time.Second) // longer than the Lease lasts
		proxy.ServeHTTP(w, r)
	default:
		panic(http.ErrAbortHandler)
	}
}

// move runs the command through the proxy, which spoils a request, by number. It returns the number of requests.
func (f *faulty) move(ctx context.Context, direction, fault string, at int64) (requests int64, out []byte, err error) {
	f.requests.Store(0)
	f.at.Store(at)
	f.fault.Store(&fault)
	f.hit.Store(nil)
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	cmd := migration(ctx, direction)
	cmd.Args = append(cmd.Args, "--kubeconfig="+f.kubeconfig)
	out, err = cmd.CombinedOutput()
	return f.requests.Load(), out, err
}

// TestErrorsOfRequests spoils one request of a migration, and then goes on with it, or undoes it. JOBSET_ALL_CASES spoils every
// request in every way.
func TestErrorsOfRequests(t *testing.T) {
	o, random := beginKilled(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	f := newFaulty(t)
	for _, direction := range []string{"to-server", "to-crd"} {
		o.measure(t, f, direction) // the first time, more requests wait for what is there from then on
		requests := o.measure(t, f, direction)
		for _, c := range spoiled(random, requests) {
			o.spoil(t, f, direction, c.fault, c.at, random)
		}
		migrate(t, direction)
	}
	o.works(t)
}

type spoiledRequest struct {
	at    int64
	fault string
}

// spoiled chooses requests.
func spoiled(random *rand.Rand, requests int64) (chosen []spoiledRequest) {
	const rounds = 12
	if os.Getenv("JOBSET_ALL_CASES") == "" {
		for range rounds {
			chosen = append(chosen, spoiledRequest{1 + random.Int64N(requests), faults[random.IntN(len(faults))]})
		}
		return chosen
	}
	for at := range requests {
		for _, fault := range faults {
			chosen = append(chosen, spoiledRequest{at + 1, fault})
		}
	}
	return chosen
}

// measure counts the requests of a migration, and moves the sets back.
func (o *takeover) measure(t *testing.T, f *faulty, direction string) int64 {
	t.Helper()
	requests, out, err := f.move(t.Context(), direction, "", 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	migrate(t, opposite(direction))
	t.Logf("%s sends %d requests", direction, requests)
	return requests
}

func opposite(direction string) string {
	if direction == "to-server" {
		return "to-crd"
	}
	return "to-server"
}

// spoil spoils a request, and ends where it began.
func (o *takeover) spoil(t *testing.T, f *faulty, direction, fault string, at int64, random *rand.Rand) {
	t.Helper()
	_, out, err := f.move(t.Context(), direction, fault, at)
	hit := "none"
	if request := f.hit.Load(); request != nil {
		hit = *request
	}
	when := fmt.Sprintf("%s with %s at request %d, %s", direction, fault, at, hit)
	t.Logf("%s: %v", when, err)
	o.unchanged(t, when)
	if err != nil && len(out) == 0 {
		t.Errorf("%s: no word about it", when)
	}
	if random.IntN(2) == 0 {
		migrate(t, direction)
	}
	if again, err := migration(t.Context(), opposite(direction)).CombinedOutput(); err != nil { // a migration that has switched the API groups must be ended first
		t.Logf("%s: %s", when, again)
		migrate(t, direction)
		migrate(t, opposite(direction))
	}
	o.unchanged(t, when+", and back")
}
