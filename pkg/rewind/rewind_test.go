// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

// api has one ConfigMap, at a version, and answers as kube-apiserver does: a watch of the future is silent, and a list
// of the future is refused.
type api struct {
	mu      sync.Mutex
	version int
	// code is the answer to the first question for the current version, if it is not 200.
	code  int
	ended chan struct{}
	// compared is how often the version was asked for, and watches how many watches began.
	compared, watches int
}

func (a *api) object() corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: strconv.Itoa(a.version)}, Data: map[string]string{"at": strconv.Itoa(a.version)}}
}

func (a *api) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a.mu.Lock()
	query := req.URL.Query()
	version, _ := strconv.Atoi(query.Get("resourceVersion"))
	ended := a.ended
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 422, Reason: metav1.StatusReasonInvalid})
	case query.Get("watch") != "":
		a.watches++
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		a.mu.Unlock()
		select {
		case <-ended:
		case <-req.Context().Done():
		}
		return
	case query.Get("limit") == "1" && a.code != 0:
		a.compared++
		w.WriteHeader(a.code)
		a.code = 0
	case version > a.version:
		w.WriteHeader(http.StatusGatewayTimeout)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 504, Reason: metav1.StatusReasonTimeout,
			Message: "Too large resource version", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}}})
	default:
		if query.Get("limit") == "1" {
			a.compared++
		}
		_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}, Items: []corev1.ConfigMap{a.object()},
		})
	}
	a.mu.Unlock()
}

// endWatches goes to another version, and ends all watches.
func (a *api) endWatches(version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = version
	close(a.ended)
	a.ended = make(chan struct{})
}

// listen serves at an address until the function that it returns is called. Then connections to it are refused, which
// makes reflectors go on with their watches.
func (a *api) listen(t *testing.T, address string) (string, func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), func() { _ = server.Close() }
}

func (a *api) counts() (compared, watches int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.compared, a.watches
}

// TestInformersListAgain takes the API away, and back at another version.
func TestInformersListAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		back, code   int
		want         string
		wantCompared bool
	}{
		"an earlier version":                         {back: 50, want: "50", wantCompared: true},
		"an earlier version, before roles are known": {back: 50, code: http.StatusForbidden, want: "50", wantCompared: true},
		"the same version":                           {back: 100, want: "100", wantCompared: true},
		"the same version, before roles are known":   {back: 100, code: http.StatusForbidden, want: "100", wantCompared: true},
		"watches end, but nothing is wrong":          {want: "100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{version: 100, ended: make(chan struct{}), code: tc.code}
			address, end := a.listen(t, "127.0.0.1:0")
			config := &rest.Config{Host: "http://" + address}
			rewind.Wrap(config)
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			factory := informers.NewSharedInformerFactory(client, 0)
			maps := factory.Core().V1().ConfigMaps()
			go maps.Informer().RunWithContext(t.Context())
			at := func() string {
				object, err := maps.Lister().ConfigMaps("default").Get("a")
				if err != nil {
					return err.Error()
				}
				return object.Data["at"]
			}
			await(t, "the first watch", func() bool { _, watches := a.counts(); return watches >= 1 && at() == "100" })
			time.Sleep(1100 * time.Millisecond) // reflectors list again after a watch that was shorter than a second
			_, before := a.counts()
			a.endWatches(100)
			if tc.back != 0 {
				end()
				time.Sleep(2 * time.Second) // reflectors begin again after about a second
				a.endWatches(tc.back)
				_, end = a.listen(t, address)
			}
			t.Cleanup(end)
			await(t, "the next watch", func() bool { _, watches := a.counts(); return watches > before && at() == tc.want })
			if compared, _ := a.counts(); (compared > 0) != tc.wantCompared {
				t.Errorf("the version was asked for %d times", compared)
			}
		})
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(fmt.Sprint(what, ": not in time"))
		}
	}
}
