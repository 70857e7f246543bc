// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"flag"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var (
	seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of all choices of clients")
	half = flag.Int("half", 1000, "how many answers the clients of a history get before its middle, and after it")
)

const (
	// checkLimit bounds the time for the check of an object.
	checkLimit = time.Minute
	// answersTimeout bounds the time in which clients get half of their answers, on a slow machine, too.
	answersTimeout = 3 * time.Minute
)

// record lets clients work on a server and returns their history. In the middle, something may happen.
func record(t *testing.T, config *rest.Config, middle func()) *History {
	t.Helper()
	t.Logf("repeat the choices with -seed=%d", *seed)
	options := Defaults(config, "default", *seed)
	options.Pause = 60 * time.Millisecond
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
