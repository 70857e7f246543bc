// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// gated is a read that ends when the test lets it.
type gated struct {
	began chan struct{}
	end   chan error
}

func (r gated) read() error {
	r.began <- struct{}{}
	return <-r.end
}

func TestConcurrentChecksShareReads(t *testing.T) {
	t.Parallel()
	r := gated{make(chan struct{}), make(chan error)}
	b := batches{read: r.read}
	first := make(chan error)
	go func() { first <- b.do(t.Context()) }()
	<-r.began
	// All of these come while the first read runs: they need a read that begins later, and share it.
	const callers = 100
	results := make(chan error)
	var waiting sync.WaitGroup
	for range callers {
		waiting.Go(func() { results <- b.do(t.Context()) })
	}
	poll.Until(t, "all wait", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.next != nil && b.next.callers == callers
	})
	r.end <- nil
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-r.began
	select {
	case <-results:
		t.Error("a caller was answered by a read that began before it came")
	default:
	}
	want := errors.New("gone")
	r.end <- want
	for range callers {
		if err := <-results; !errors.Is(err, want) {
			t.Errorf("a caller was answered with %v", err)
		}
	}
	waiting.Wait()
	select {
	case <-r.began:
		t.Error("a third read began")
	default:
	}
}

func TestChecksEndWithTheirCallers(t *testing.T) {
	t.Parallel()
	r := gated{make(chan struct{}), make(chan error)}
	b := batches{read: r.read}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.do(ctx) }()
	<-r.began
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	r.end <- nil
}

// TestExchangedStores exchanges what is behind the address of a server that serves, in every way that can be noticed.
func TestExchangedStores(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, g *Guard, change func(*witness.Key)) {
		t.Helper()
		found, err := g.store.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		change(&found.Key)
		if _, err := g.store.write(t.Context(), &found.Key, found.ModRevision); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		exchange func(*testing.T, *Guard, *member)
		want     witness.Reason
	}{
		"nothing is exchanged":            {func(*testing.T, *Guard, *member) {}, ""},
		"etcd starts again":               {func(_ *testing.T, _ *Guard, m *member) { m.keep("copy") }, ""},
		"another server raises the floor": {func(t *testing.T, g *Guard, _ *member) { put(t, g, func(*witness.Key) {}) }, ""},
		"the store is empty":              {func(_ *testing.T, _ *Guard, m *member) { m.exchange("") }, witness.ReasonEmptyStore},
		"the key is deleted": {func(t *testing.T, g *Guard, _ *member) {
			if _, err := g.store.client.Delete(t.Context(), g.store.key); err != nil {
				t.Fatal(err)
			}
		}, witness.ReasonEmptyStore},
		"the key is replaced":             {func(t *testing.T, g *Guard, _ *member) { put(t, g, func(k *witness.Key) { k.UUID = "other" }) }, witness.ReasonForeignStore},
		"another cluster takes the store": {func(t *testing.T, g *Guard, _ *member) { put(t, g, func(k *witness.Key) { k.ClusterUID = "other" }) }, witness.ReasonOtherCluster},
		"a newer version has written it":  {func(t *testing.T, g *Guard, _ *member) { put(t, g, func(k *witness.Key) { k.Format++ }) }, witness.ReasonNewerFormat},
		"the store is older":              {func(_ *testing.T, _ *Guard, m *member) { m.exchange("older") }, witness.ReasonRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMember(t)
			g := newMain().started(t, m)
			m.keep("older")
			s := storageOf(t, m, g, false)
			create(t, s, newSet("a", "1")) // newer than the key, which is the same in the older store
			tc.exchange(t, g, m)
			checkAnswers(t, s, tc.want != "")
			if reason := g.Reason(); reason != tc.want || g.Serving() != (tc.want == "") {
				t.Errorf("refused for %q, serving %t; want %q", reason, g.Serving(), tc.want)
			}
		})
	}
}

// checkAnswers asks for what is not there in each way, and wants 503 of a store that was exchanged.
func checkAnswers(t *testing.T, s storage.Interface, exchanged bool) {
	t.Helper()
	missing, out := keyOf("missing"), &jobset.JobSet{}
	allow := func(_ context.Context, _ runtime.Object) error { return nil }
	for name, answer := range map[string]error{
		"get":    s.Get(t.Context(), missing, storage.GetOptions{}, out),
		"delete": s.Delete(t.Context(), missing, out, nil, allow, nil, storage.DeleteOptions{}),
		"update": s.GuaranteedUpdate(t.Context(), missing, out, true, nil, func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
			return nil, nil, apierrors.NewNotFound(jobset.Resource("jobsets"), "missing")
		}, nil),
	} {
		if exchanged != apierrors.IsServiceUnavailable(answer) || exchanged == (storage.IsNotFound(answer) || apierrors.IsNotFound(answer)) {
			t.Errorf("%s: answered with %v", name, answer)
		}
		if _, retry := apierrors.SuggestsClientDelay(answer); retry {
			t.Errorf("%s: the client is asked to repeat the request", name)
		}
	}
	if exchanged {
		return // lists wait
	}
	list := storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersionMatch: metav1.ResourceVersionMatch("")}
	if err := s.GetList(t.Context(), "/jobsets/", list, &jobset.JobSetList{}); err != nil {
		t.Error(err)
	}
}
