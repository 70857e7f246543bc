// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const (
	sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
	// limit is the memory of the server, which is a soft limit.
	limit = "600MiB"
)

// largeSet returns a suspended set of 1.3 MB.
func largeSet(name string) []byte { return setOf(name, 300) }

// setOf returns a suspended set with variables of 4.3 kB.
func setOf(name string, variables int) []byte {
	var env strings.Builder
	for i := range variables {
		fmt.Fprintf(&env, `{"name":"v%d","value":%q},`, i, strings.Repeat("x", 4300))
	}
	return fmt.Appendf(nil, `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":%q},"spec":{"suspend":true,"replicatedJobs":[`+
		`{"name":"w","template":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","env":[%s]}]}}}}}]}}`, name, strings.TrimSuffix(env.String(), ","))
}

func (s *server) request(t testing.TB, client *http.Client, method, path, user string, body []byte) *http.Response {
	t.Helper()
	response, err := client.Do(s.newRequest(t, method, path, user, nil, body))
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func (s *server) newRequest(t testing.TB, method, path, user string, header http.Header, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+user)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return req
}

// do sends a request of an administrator, which must succeed.
func (s *server) do(t testing.TB, client *http.Client, method, path string, body []byte) {
	t.Helper()
	response := s.request(t, client, method, path, "admin", body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %d (%v) %.300s", method, path, response.StatusCode, err, answer)
	}
}

// TestWatchesThatNobodyReads opens 1,000 watches of five sets of 1.3 MB over HTTP/2 and HTTP/1.1. Their clients read nothing, or one event
// of some of them. An informer of another user, and one of the same user, see each change. Without bounds, the server used 2,933 MiB.
// Each run has one case of watches that are not read, one of watches that are read once, and one of WebSockets.
func TestWatchesThatNobodyReads(t *testing.T) {
	tier.OnRequest(t, "measures the resident memory of a server with hundreds of watches")
	webSocket := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Origin": {"https://localhost"},
	}
	cases := map[string]struct {
		query  string
		header http.Header
		// old means that the watches begin before the last changes, which there are unless unchanged is true.
		old, unchanged bool
		// reads is how many bytes of each watch are read.
		reads int64
		// watches is how many there are, and most what the server may use at the peak, in MiB.
		watches, most int
	}{
		"of no version":                         {query: "watch=true", watches: 1000, most: 900},
		"of a set":                              {query: "watch=true&fieldSelector=metadata.name%3Ds0", watches: 1000, most: 900},
		"of an old version":                     {query: "watch=true", old: true, watches: 1000, most: 900},
		"of which one is read":                  {query: "watch=true", old: true, reads: 1_300_000, watches: 300, most: 800},
		"of tables":                             {query: "watch=true&includeObject=Object", header: http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1"}}, old: true, reads: 1_300_000, watches: 300, most: 800},
		"over WebSocket":                        {query: "watch=true", old: true, header: webSocket, watches: 1000, most: 900},
		"over WebSocket, of a set that changes": {query: "watch=true&fieldSelector=metadata.name%3Ds0", old: true, unchanged: true, header: webSocket, watches: 1000, most: 900},
	}
	kind := func(name string) string { return fmt.Sprint(cases[name].reads > 0, cases[name].header.Get("Upgrade")) }
	for _, name := range sample.Kinds(t, slices.Sorted(maps.Keys(cases)), kind) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			s := startServer(t, "GOMEMLIMIT="+limit)
			admin := s.client(true)
			for i := range 5 {
				s.do(t, admin, http.MethodPost, sets, largeSet(fmt.Sprintf("s%d", i)))
			}
			query := tc.query
			if tc.old {
				query += "&resourceVersion=" + s.version(t, admin)
				for i := range 10 {
					if tc.unchanged {
						break
					}
					s.do(t, admin, http.MethodPatch, fmt.Sprintf("%s/s%d", sets, i%5), fmt.Appendf(nil, `{"metadata":{"labels":{"before":"%d"}}}`, i/5))
				}
			}
			seen := map[string]func() string{"alice": s.follow(t, "alice"), "mallory": s.follow(t, "mallory")}
			http2 := tc.header.Get("Upgrade") == ""
			bodies := make([]io.ReadCloser, tc.watches) // a connection to which nothing refers is closed
			var opening sync.WaitGroup
			var opened atomic.Int32
			slots := make(chan struct{}, 20)
			var client *http.Client
			for i := range tc.watches {
				if i%50 == 0 {
					client = s.client(http2 && i%100 == 0)
				}
				opening.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					// The server may end a watch before it has answered: its client is one of many that do not read.
					response, err := client.Do(s.newRequest(t, http.MethodGet, sets+"?"+query, "mallory", tc.header, nil)) //nolint:bodyclose // the test does not read it to its end
					if err != nil {
						return
					}
					opened.Add(1)
					bodies[i] = response.Body
					_, _ = io.CopyN(io.Discard, response.Body, tc.reads)
				})
			}
			if opening.Wait(); int(opened.Load()) < tc.watches/2 {
				t.Errorf("%d of %d watches were opened", opened.Load(), tc.watches)
			}
			for i := range 10 {
				s.do(t, admin, http.MethodPatch, fmt.Sprintf("%s/s%d", sets, i%5), fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i/5))
			}
			for user, rounds := range seen {
				poll.UntilNil(t, "the informer of "+user+" sees all changes", func() error {
					if got := rounds(); got != "11111" {
						return fmt.Errorf("it sees rounds %s, want 11111", got)
					}
					return nil
				})
			}
			runtime.KeepAlive(bodies)
			if peak := s.memory(t, "VmHWM"); peak > float64(tc.most) {
				t.Errorf("the server used %.0f MiB at the peak, want at most %d", peak, tc.most)
			} else {
				t.Logf("peak of %.0f MiB", peak)
			}
		})
	}
}

// version returns the version of the store.
func (s *server) version(t testing.TB, client *http.Client) string {
	t.Helper()
	response := s.request(t, client, http.MethodGet, sets+"?limit=1", "admin", nil)
	defer response.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// follow runs an informer of a user, and returns what it has of the label of each set.
func (s *server) follow(t *testing.T, user string) (rounds func() string) {
	t.Helper()
	clients, err := versioned.NewForConfig(&rest.Config{Host: s.url, BearerToken: user, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	informer := externalversions.NewSharedInformerFactory(clients, 0).Jobset().V1alpha2().JobSets().Informer()
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
	return func() (out string) {
		for i := range 5 {
			object, found, err := informer.GetStore().GetByKey(fmt.Sprintf("default/s%d", i))
			if err != nil || !found {
				return fmt.Sprint(err)
			}
			out += object.(*jobsetv1alpha2.JobSet).Labels["round"]
		}
		return out
	}
}

// BenchmarkWatches measures the memory of watches of one object of 100 kB, as restart agents have them: before and
// after changes that all clients read, and at the peak. Agents come through kube-apiserver, which has many watches on a
// connection; others may have a connection for each.
func BenchmarkWatches(b *testing.B) {
	for _, perConnection := range []int{100, 1} {
		for _, n := range []int{1000, 5000, 20_000} {
			if perConnection == 1 && n > 5000 {
				continue // more connections than a process may have by default
			}
			b.Run(fmt.Sprintf("%d/%d-per-connection", n, perConnection), func(b *testing.B) {
				for range b.N {
					measureWatches(b, n, perConnection)
				}
			})
		}
	}
}

func measureWatches(b *testing.B, n, perConnection int) {
	const changes = 10
	s := startServer(b, "GOMEMLIMIT=4GiB") // 20,000 watches of one user need more than the default
	admin := s.client(true)
	s.do(b, admin, http.MethodPost, sets, setOf("s", 25))
	s.do(b, admin, http.MethodGet, "/collect", nil)
	before := s.memory(b, "VmRSS")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var client *http.Client
	var events atomic.Int64
	for i := range n {
		if i%perConnection == 0 {
			client = s.client(true)
		}
		response := s.request(b, client, http.MethodGet, sets+"?watch=true&fieldSelector=metadata.name%3Ds", "agent", nil)
		context.AfterFunc(ctx, func() { _ = response.Body.Close() })
		go func() {
			for lines := bufio.NewReader(response.Body); ; {
				for more := true; more; {
					var err error
					if _, more, err = lines.ReadLine(); err != nil {
						return
					}
				}
				events.Add(1)
			}
		}()
	}
	all := func(want int) {
		if err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
			return events.Load() == int64(want), nil
		}); err != nil {
			b.Fatalf("%d events arrived, want %d", events.Load(), want)
		}
	}
	perWatch := func(what string) {
		s.do(b, admin, http.MethodGet, "/collect", nil)
		b.ReportMetric((s.memory(b, "VmRSS")-before)*1024/float64(n), what)
	}
	all(n)
	perWatch("idle-KiB/watch")
	for i := range changes {
		s.do(b, admin, http.MethodPatch, sets+"/s", fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i))
		all(n * (i + 2))
	}
	perWatch("after-KiB/watch")
	b.ReportMetric(s.memory(b, "VmHWM"), "peak-MiB")
}
