// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/rewind"
)

// api has one ConfigMap, at a version, and answers as kube-apiserver does: a watch of the future is silent, and a list
// of the future is refused. It is the transport of its clients.
type api struct {
	mu      sync.Mutex
	version int
	// away refuses connections, which makes reflectors go on with their watches.
	away bool
	// code is the answer to the first question for the current version, if it is not 200.
	code  int
	ended chan struct{}
	// compared is how often the version was asked for, and watches how many watches began.
	compared, watches int
}

func (a *api) object() corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: strconv.Itoa(a.version)}, Data: map[string]string{"at": strconv.Itoa(a.version)}}
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	query, answer := req.URL.Query(), httptest.NewRecorder()
	if query.Get("watch") == "" || query.Get("sendInitialEvents") != "" {
		a.answer(query, answer)
		return answer.Result(), nil
	}
	a.watches++
	answer.Header().Set("Content-Type", "application/json")
	response, ended := answer.Result(), a.ended
	body, end := io.Pipe()
	response.Body = body
	go func() {
		select {
		case <-ended:
		case <-req.Context().Done():
		}
		_ = end.Close()
	}()
	return response, nil
}

func (a *api) answer(query url.Values, w http.ResponseWriter) {
	version, _ := strconv.Atoi(query.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 422, Reason: metav1.StatusReasonInvalid})
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
}

// endWatches goes to another version, and ends all watches. It says whether connections are refused from now on.
func (a *api) endWatches(version int, away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version, a.away = version, away
	close(a.ended)
	a.ended = make(chan struct{})
}

func (a *api) counts() (compared, watches int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.compared, a.watches
}

const (
	// beyondShort is longer than the watches after which reflectors list again because they were short, which is a second.
	beyondShort = 1100 * time.Millisecond
	// absence is long enough for reflectors to fail: they begin again after a second or two.
	absence = 5 * time.Second
	// longestBackoff is longer than the longest pause of reflectors.
	longestBackoff = 2 * time.Minute
)

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
			synctest.Test(t, func(t *testing.T) {
				a := &api{version: 100, ended: make(chan struct{}), code: tc.code}
				config := &rest.Config{Host: "http://api", Transport: a, QPS: -1}
				rewind.Wrap(config)
				client, err := kubernetes.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				maps := informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps()
				// The handler of client-go pauses by a clock that all bubbles share.
				if err := maps.Informer().SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
					t.Fatal(err)
				}
				go maps.Informer().RunWithContext(t.Context())
				expect := func(when, want string, earlier int) (watches int) {
					t.Helper()
					synctest.Wait()
					object, err := maps.Lister().ConfigMaps("default").Get("a")
					if err != nil || object.Data["at"] != want {
						t.Fatalf("%s: the informer has %v, error %v; want the object of version %s", when, object, err, want)
					}
					if _, watches = a.counts(); watches <= earlier {
						t.Fatalf("%s: no watch began", when)
					}
					return watches
				}
				time.Sleep(beyondShort)
				began := expect("first", "100", 0)
				a.endWatches(100, tc.back != 0)
				if tc.back != 0 {
					time.Sleep(absence)
					a.endWatches(tc.back, false)
				}
				time.Sleep(longestBackoff)
				expect("later", tc.want, began)
				if compared, _ := a.counts(); (compared > 0) != tc.wantCompared {
					t.Errorf("the version was asked for %d times", compared)
				}
			})
		})
	}
}
