// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// firstCreations is how many creations a controller begins for a set before one is answered.
const firstCreations = 4

// TestShutdownWhileJobsAreCreated asks a controller to end while the main API does not answer the creation of Jobs. It begins
// no other creation, stores the status, gives the lease up and ends, all within the grace period of its pod.
func TestShutdownWhileJobsAreCreated(t *testing.T) {
	tier.OnRequest(t, "leases that end in real time")
	l := newLife(t, newDice(t))
	r := newReplica(t)
	var begun, late, statuses atomic.Int64
	var asked atomic.Bool
	hangs := make(chan struct{})
	r.proxy.use(func(w http.ResponseWriter, request *http.Request, pass http.Handler) {
		switch {
		case request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/namespaces/"+l.namespace+"/jobs"):
			if asked.Load() {
				late.Add(1)
			}
			if begun.Add(1) == firstCreations {
				close(hangs)
			}
			<-request.Context().Done()
			loseAnswer()
		case asked.Load() && request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, "/jobsets/"+setName+"/status"):
			statuses.Add(1)
		}
		pass.ServeHTTP(w, request)
	})
	if err := l.create(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hangs:
	case <-time.After(phaseTimeout):
		t.Fatalf("%d Jobs were asked for, want %d", begun.Load(), firstCreations)
	}
	asked.Store(true)
	begin := time.Now()
	if err := r.process.Terminate(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the controller ended after %v", time.Since(begin).Round(10*time.Millisecond))
	if late.Load() > 0 || statuses.Load() != 1 {
		t.Errorf("%d creations and %d status writes after the signal, must be 0 and 1", late.Load(), statuses.Load())
	}
	if name, err := holder(l.ctx); err != nil || name != "" {
		t.Errorf("the lease is held by %q, %v; must be given up", name, err)
	}
}
