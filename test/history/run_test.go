// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"flag"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

var (
	seed = flag.Uint64("seed", defaultSeed(), "seed of all choices of clients")
	half = flag.Int("half", 1000, "how many answers the clients of a history get before its middle, and after it")
)

const (
	// checkLimit bounds the time for the check of an object.
	checkLimit = 5 * time.Minute
	// answersTimeout bounds the time in which clients get half of their answers, on a slow machine, too.
	answersTimeout = 10 * time.Minute
)

// defaultSeed is the same in the gate, so that only a change can make it fail.
func defaultSeed() uint64 {
	if tier.Long() {
		return uint64(time.Now().UnixNano())
	}
	return 1
}

// record lets clients work on a server and returns their history. In the middle, something may happen.
func record(t *testing.T, config *rest.Config, middle func()) *History {
	t.Helper()
	t.Logf("repeat the choices with -seed=%d", *seed)
	options := Defaults(config, "default", *seed)
	options.Pause, options.Timeout = 60*time.Millisecond, time.Minute
	r, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AwaitAnswers(t.Context(), *half, answersTimeout); err != nil {
		t.Fatal(err)
	}
	middle()
	if err := r.AwaitAnswers(t.Context(), *half, answersTimeout); err != nil {
		t.Fatal(err)
	}
	h, err := r.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// script lets one client send requests, and again after the fault, while one watcher watches. Updates name the version that the client
// knows.
func script(t *testing.T, config *rest.Config, before []Operation, fault func(), after []Operation) *History {
	t.Helper()
	options := Defaults(config, "default", 1)
	options.Clients, options.Watchers, options.Timeout = 0, 1, time.Minute
	r, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	client, watcher := r.clients[0], r.watchers[0]
	send := func(operations []Operation) {
		for _, o := range operations {
			if o.Kind == Update || o.Kind == UpdateStatus {
				o.Version = client.known[o.Object].Version
			}
			client.do(t.Context(), o)
		}
	}
	send(before)
	// What the watcher has not listed yet would be in its list and not in its events.
	shown := func(context.Context) (bool, error) { return watcher.reached() > 0, nil }
	if err := wait.PollUntilContextCancel(t.Context(), 10*time.Millisecond, true, shown); err != nil {
		t.Fatal(err)
	}
	fault()
	send(after)
	h, err := r.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// enough fails the test if one of the promises was not tried.
func enough(t *testing.T, h *History) {
	t.Helper()
	for _, tried := range []struct {
		kind    Kind
		outcome Outcome
	}{
		{Create, Done}, {Create, Exists}, {Update, Done}, {Update, Conflict}, {UpdateStatus, Done}, {UpdateStatus, Conflict},
		{Delete, Done}, {Delete, NotFound}, {Get, Done}, {Get, NotFound}, {List, Done},
	} {
		if h.Count(tried.kind, tried.outcome) == 0 {
			t.Errorf("no %s had the outcome %q: the history proves too little", tried.kind, tried.outcome)
		}
	}
}

func TestHistoryOfServer(t *testing.T) {
	h := record(t, serve(t, nil), func() {})
	report := Check(h, checkLimit)
	t.Log(report, h.Reasons())
	enough(t, h)
	if !report.OK() {
		t.Error("the server broke its promises")
	}
}
