// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcheck

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// deadMember returns an address that accepts connections and never answers.
func deadMember(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String()
}

// newMain returns a cluster that answers reviews.
func newMain(objects ...runtime.Object) *kubefake.Clientset {
	main := kubefake.NewClientset(objects...)
	main.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	return main
}

func document(t *testing.T, c *Checker) *selfcheck.Document {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	d := &selfcheck.Document{}
	if err := json.Unmarshal(w.Body.Bytes(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentNamesWhatFails(t *testing.T) {
	main := newMain()
	main.PrependReactor("create", "tokenreviews", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("you may not") })
	dead := deadMember(t)
	d := document(t, &Checker{
		Main: main, memberTimeout: 10 * time.Millisecond, Transport: storagebackend.TransportConfig{ServerList: []string{dead}}, Gates: map[string]bool{"RestartJob": true},
		Ready: []healthz.HealthChecker{healthz.PingHealthz, healthz.NamedCheck("etcd", func(*http.Request) error { return errors.New("it is down") })},
	})
	if diff := cmp.Diff([]selfcheck.Problem{{Name: "etcd", Message: "it is down"}}, d.Unready); diff != "" {
		t.Errorf("unready (-want +got):\n%s", diff)
	}
	want := []selfcheck.Problem{
		{Name: "tokenreviews", Message: "you may not"},
		{Name: "configmap kube-system/extension-apiserver-authentication", Message: `configmaps "extension-apiserver-authentication" not found`},
	}
	if diff := cmp.Diff(want, d.Main); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if len(d.Etcd) != 1 || d.Etcd[0].Endpoint != dead || !strings.HasPrefix(d.Etcd[0].Error, "no answer within 10ms: ") {
		t.Errorf("members: %+v", d.Etcd)
	}
	if !d.FeatureGates["RestartJob"] || d.Version == "" || d.Server == "" || d.Time.IsZero() {
		t.Errorf("document: %+v", d)
	}
}

// TestDocumentIsShared counts the questions: all who ask within a moment get the same document.
func TestDocumentIsShared(t *testing.T) {
	main := newMain(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}})
	c := &Checker{Main: main}
	first := document(t, c)
	if len(first.Main) > 0 {
		t.Errorf("questions that fail: %v", first.Main)
	}
	c.made = c.made.Add(freshFor / 2) // however slowly the test runs
	if second := document(t, c); !second.Time.Equal(&first.Time) {
		t.Errorf("two documents, of %s and %s", first.Time, second.Time)
	}
	if asked := len(main.Actions()); asked != 3 {
		t.Errorf("%d questions, want 3", asked)
	}
	c.made = c.made.Add(-2 * freshFor)
	document(t, c)
	if asked := len(main.Actions()); asked != 6 {
		t.Errorf("%d questions after the document became old, want 6", asked)
	}
}

// TestClientsNeedNotWait has a readiness check that does not answer: a client that goes does not wait for it, and the document is made for
// the others.
func TestClientsNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		c := &Checker{Main: newMain(), Ready: []healthz.HealthChecker{healthz.NamedCheck("slow", func(*http.Request) error {
			<-answer
			return nil
		})}}
		first := make(chan struct{})
		go func() {
			defer close(first)
			document(t, c)
		}()
		synctest.Wait()
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "/", nil))
		close(answer)
		<-first
	})
}
