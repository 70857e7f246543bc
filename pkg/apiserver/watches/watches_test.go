// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
)

const (
	sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
	// limit is the memory of the server: that of the hostile suite.
	limit = "900MiB"
	// most is what the server may use at the peak, in MiB. The limit is a soft one. Without a bound, it used 2,933.
	most = 1200
)

// largeSet returns a suspended set of 1.3 MB.
func largeSet(name string) []byte {
	var env strings.Builder
	for i := range 300 {
		fmt.Fprintf(&env, `{"name":"v%d","value":%q},`, i, strings.Repeat("x", 4300))
	}
	return fmt.Appendf(nil, `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":%q},"spec":{"suspend":true,"replicatedJobs":[`+
		`{"name":"w","template":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","env":[%s]}]}}}}}]}}`, name, strings.TrimSuffix(env.String(), ","))
}

func (s *server) request(t testing.TB, client *http.Client, method, path, user string, body []byte) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+user)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return response
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

// TestWatchesThatNobodyReads opens 1,000 watches of five sets of 1.3 MB over HTTP/2 and HTTP/1.1 that nobody reads. An informer of another user, and one of the
// same user, see each change.
func TestWatchesThatNobodyReads(t *testing.T) {
	s := startServer(t, "GOMEMLIMIT="+limit)
	admin := s.client(true)
	for i := range 5 {
		s.do(t, admin, http.MethodPost, sets, largeSet(fmt.Sprintf("s%d", i)))
	}
	seen := map[string]func() string{"alice": s.follow(t, "alice"), "mallory": s.follow(t, "mallory")}
	var opening sync.WaitGroup
	slots := make(chan struct{}, 20)
	var client *http.Client
	for i := range 1000 {
		if i%50 == 0 {
			client = s.client(i%100 == 0)
		}
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.request(t, client, http.MethodGet, sets+"?watch=true&resourceVersion=0", "mallory", nil) //nolint:bodyclose // nobody reads it
		})
	}
	opening.Wait()
	for i := range 10 {
		s.do(t, admin, http.MethodPatch, fmt.Sprintf("%s/s%d", sets, i%5), fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i/5))
	}
	for user, rounds := range seen {
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
			return rounds() == "11111", nil
		}); err != nil {
			t.Errorf("the informer of %s sees rounds %s, want 11111", user, rounds())
		}
	}
	if peak := s.memory(t, "VmHWM"); peak > most {
		t.Errorf("the server used %.0f MiB at the peak, want at most %d", peak, most)
	} else {
		t.Logf("peak of %.0f MiB", peak)
	}
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

// BenchmarkIdleWatches measures the memory of watches of one object, as restart agents have them, 100 on a connection.
func BenchmarkIdleWatches(b *testing.B) {
	for _, n := range []int{1000, 5000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				s := startServer(b)
				admin := s.client(true)
				small, err := json.Marshal(map[string]any{
					"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metav1.ObjectMeta{Name: "s"},
					"spec": map[string]any{"suspend": true, "replicatedJobs": []any{}},
				})
				if err != nil {
					b.Fatal(err)
				}
				s.do(b, admin, http.MethodPost, sets, small)
				s.do(b, admin, http.MethodGet, "/collect", nil)
				before := s.memory(b, "VmRSS")
				var client *http.Client
				for i := range n {
					if i%100 == 0 {
						client = s.client(true)
					}
					response := s.request(b, client, http.MethodGet, sets+"?watch=true&fieldSelector=metadata.name%3Ds", "agent", nil)
					defer response.Body.Close()
				}
				s.do(b, admin, http.MethodGet, "/collect", nil)
				b.ReportMetric((s.memory(b, "VmRSS")-before)*1024/float64(n), "KiB/watch")
			}
		})
	}
}
