// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

// fakeSet is an API server with one set of so many pods, and a controller that counts attempts.
type fakeSet struct {
	mu                sync.Mutex
	pods              []string
	attempts          map[string]int
	restarts          map[string]int
	previous, current int
	// changed is closed with each change of the status.
	changed chan struct{}
	watches int
}

func newFakeSet(pods int) *fakeSet {
	f := &fakeSet{attempts: map[string]int{}, restarts: map[string]int{}, previous: -1, current: -1, changed: make(chan struct{})}
	for i := range pods {
		f.pods = append(f.pods, fmt.Sprint("pod-", i))
	}
	return f
}

func (f *fakeSet) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const pods = "/api/v1/namespaces/ns/pods"
	name := strings.TrimPrefix(req.URL.Path, pods+"/")
	switch {
	case strings.HasSuffix(req.URL.Path, "/jobsets"):
		f.watch(w, req)
	case req.URL.Path == pods:
		list := corev1.PodList{TypeMeta: typeMeta("v1", "PodList")}
		for _, name := range f.pods {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: objectMeta(name, "ns")})
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		f.patch(strings.TrimSuffix(name, "/status"), strings.HasSuffix(name, "/status"), req.Body)
		_ = json.NewEncoder(w).Encode(corev1.Pod{TypeMeta: typeMeta("v1", "Pod"), ObjectMeta: objectMeta(name, "ns")})
	}
}

// watch shows the status whenever it changes.
func (f *fakeSet) watch(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	f.watches++
	f.mu.Unlock()
	for kind := "ADDED"; ; kind = "MODIFIED" {
		f.mu.Lock()
		changed, status := f.changed, map[string]int{}
		if f.previous >= 0 {
			status["previousInPlaceRestartAttempt"] = f.previous
		}
		if f.current >= 0 {
			status["currentInPlaceRestartAttempt"] = f.current
		}
		f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": map[string]any{"status": status}})
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{}})
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}

// patch does what the controller does about the attempt of a pod.
func (f *fakeSet) patch(pod string, status bool, body io.Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status {
		f.restarts[pod]++
		return
	}
	var applied corev1.Pod
	_ = json.NewDecoder(body).Decode(&applied)
	var attempt int
	_, _ = fmt.Sscan(applied.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey], &attempt)
	f.attempts[pod] = attempt
	least, most := attempt, attempt
	for _, n := range f.attempts {
		least, most = min(least, n), max(most, n)
	}
	if len(f.attempts) == len(f.pods) && least == most {
		f.current = most
	}
	f.previous = max(f.previous, most-1)
	close(f.changed)
	f.changed = make(chan struct{})
}

func TestAgentsRestartTogether(t *testing.T) {
	const pods = 12
	fake := newFakeSet(pods)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(t.Context(), kubeconfig, "", "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := (&space{runner: &runner{Env: &Env{Cluster: c}}, name: "ns"}).newAgents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.stop)
	if err := all.start(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	all.failOne()
	if err := all.untilLifted(t.Context(), 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if fake.watches < 2*pods || len(fake.restarts) != pods || fake.current != 1 || fake.previous != 0 {
		t.Errorf("%d watches, restarts %v, attempts %d and %d", fake.watches, fake.restarts, fake.previous, fake.current)
	}
	for pod, n := range fake.restarts {
		if n != 1 {
			t.Errorf("pod %s restarted %d times", pod, n)
		}
	}
}
