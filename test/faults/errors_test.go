// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// faulty is the share of requests that go wrong.
const faulty = 0.15

// TestKubeAPIServerFails lets a share of all requests of the controller go wrong, in every way that kube-apiserver and the
// network have: refused, delayed, lost before they arrived, carried out without an answer, watches broken off.
func TestKubeAPIServerFails(t *testing.T) {
	tier.OnRequest(t, "breaks a control plane for minutes")
	dice := newDice(t)
	p := newProxy(t)
	f := &failing{dice: dice, seen: map[string]int{}}
	p.use(f.intercept)
	controller := supervise(newControllers(t, p.kubeconfig, "--leader-elect=false"))
	l := newLife(t, rand.New(rand.NewPCG(*seed, 1))) //nolint:gosec // choices, not secrets
	for _, phase := range l.phases() {
		l.live(phase)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("faults: %v", f.seen)
	for _, kind := range ofWrites {
		if f.seen[kind.name] == 0 {
			t.Errorf("fault %q never happened", kind.name)
		}
	}
	if err := controller.died(0); err != nil {
		t.Error(err)
	}
}

// failing breaks requests at random.
type failing struct {
	mu   sync.Mutex
	dice *rand.Rand
	seen map[string]int
}

// fault is a way in which a request goes wrong.
type fault struct {
	name   string
	happen interceptor
}

var (
	// refusals can meet every request.
	refusals = []fault{
		{"429 with a time to wait", refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "1")},
		{"429", refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "")},
		{"500", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "")},
		{"504 before it is done", refuse(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "")},
		{"lost before it is done", func(http.ResponseWriter, *http.Request, http.Handler) { loseAnswer() }},
	}
	// ofWatches can meet a request that is answered for as long as it lasts.
	ofWatches = append([]fault{
		{"broken off", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			defer cancel()
			pass.ServeHTTP(w, r.WithContext(ctx))
		}},
	}, refusals...)
	// ofReads can meet a request for an answer.
	ofReads = append([]fault{
		{"late", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			hold(r)
			pass.ServeHTTP(w, r)
		}},
	}, refusals...)
	// ofWrites can meet a request that changes something.
	ofWrites = append([]fault{
		{"409", refuse(http.StatusConflict, metav1.StatusReasonConflict, "")},
		{"504 after it is done", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			passUnheard(r, pass)
			refuse(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "")(w, r, pass)
		}},
		{"lost after it is done", func(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
			passUnheard(r, pass)
			loseAnswer()
		}},
	}, ofReads...)
)

func (f *failing) intercept(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	kinds := ofReads
	switch {
	case strings.Contains(r.URL.RawQuery, "watch=true"):
		kinds = ofWatches
	case r.Method != http.MethodGet:
		kinds = ofWrites
	}
	if happen := f.roll(kinds); happen != nil {
		happen(w, r, pass)
		return
	}
	pass.ServeHTTP(w, r)
}

// roll chooses one of the faults; nil for none.
func (f *failing) roll(kinds []fault) interceptor {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dice.Float64() >= faulty {
		return nil
	}
	kind := kinds[f.dice.IntN(len(kinds))]
	f.seen[kind.name]++
	return kind.happen
}

// refuse answers with an error as kube-apiserver sends it.
func refuse(code int32, reason metav1.StatusReason, retryAfter string) interceptor {
	body, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "refused by the test",
	})
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(int(code))
		_, _ = w.Write(body) // the client is free to go
	}
}

// hold keeps a request waiting, as a busy server does.
func hold(r *http.Request) {
	select {
	case <-time.After(2 * time.Second):
	case <-r.Context().Done():
	}
}
