// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// floodUntil sends invalid tokens from so many clients of an address, each without a pause, until the function that it returns is called.
func (s *tokenServer) floodUntil(t *testing.T, clients int, address func(client, request int) string) (end func()) {
	t.Helper()
	var group sync.WaitGroup
	var ended atomic.Bool
	for client := range clients {
		group.Go(func() {
			time.Sleep(time.Duration(client%50) * time.Millisecond) // one of them comes in each millisecond
			for request := 0; !ended.Load(); request++ {
				if w, _ := s.send(t.Context(), address(client, request), fmt.Sprintf("bad-%d-%d", client, request)); w.Code == http.StatusTooManyRequests {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	return func() {
		ended.Store(true)
		group.Wait()
	}
}

// TestNewTokenBesideFlood sends a valid token for the first time from an address that floods, as clients of Kubernetes do: they
// come again after Retry-After, on the same connection. Before, it was never its turn.
func TestNewTokenBesideFlood(t *testing.T) {
	const clients, tries = 150, 60
	for name, c := range map[string]struct {
		address func(client, request int) string
		// connections are the connections that ask before the token comes.
		connections int
	}{
		"on one connection": {connections: 1, address: func(int, int) string { return "10.0.0.1:1" }},
		"on many connections": {connections: clients, address: func(client, _ int) string {
			return fmt.Sprintf("10.0.0.1:%d", client+1)
		}},
		"on a connection for each token": {connections: maxBadTokensWaiting, address: func(client, request int) string {
			return fmt.Sprintf("10.0.0.1:%d", 1+(client+request*clients)%60000)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTokenServer(t)
				end := s.floodUntil(t, clients, c.address)
				defer end()
				time.Sleep(15*time.Second + 5*time.Millisecond)
				before, attempts := s.asked.Load(), 0
				for code := 0; code != http.StatusOK && attempts < tries; attempts++ {
					w, _ := s.send(t.Context(), "10.0.0.1:65000", "good-new")
					if code = w.Code; code == http.StatusTooManyRequests {
						time.Sleep(time.Second)
					}
				}
				// Turns also pass while the client does what Retry-After says.
				turns, most := int(s.asked.Load()-before), 1+c.connections+attempts*badTokensPerSecond
				if turns > most || attempts == tries {
					t.Errorf("after %d attempts and %d turns, want at most %d turns", attempts, turns, most)
				}
			})
		})
	}
}

// TestTurnsOfConnections shows in which order connections have their turns, and which requests give way.
func TestTurnsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		s.flood(maxBadTokens, "10.0.0.1:1")()
		var mu sync.Mutex
		var order []string
		send := func(remote string, times int) {
			for range times {
				go func() {
					w, _ := s.send(t.Context(), remote, "bad-"+remote)
					mu.Lock()
					defer mu.Unlock()
					order = append(order, fmt.Sprint(remote[len("10.0.0.1:"):], " ", w.Code))
				}()
				synctest.Wait()
			}
		}
		send("10.0.0.1:2", 3)
		send("10.0.0.1:3", 1)
		send("10.0.0.1:2", maxBadTokensWaiting-4)
		send("10.0.0.1:4", 1) // the last request of connection 2 gives way
		send("10.0.0.1:2", 1) // it has enough
		time.Sleep(time.Second/badTokensPerSecond*4 + time.Millisecond)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := []string{"2 429", "2 429", "2 401", "3 401", "4 401", "2 401"}
		if fmt.Sprint(order) != fmt.Sprint(want) {
			t.Errorf("answers %v, want %v", order, want)
		}
		if waiting := len(s.limit.current("10.0.0.1").waiting); waiting != maxBadTokensWaiting-4 {
			t.Errorf("%d requests wait, want %d", waiting, maxBadTokensWaiting-4)
		}
	})
}

// TestMemoryOfConnections sends tokens on more connections than are remembered.
func TestMemoryOfConnections(t *testing.T) {
	limit := newTokenServer(t).limit
	for i := range badTokensConnections + 1000 {
		limit.enter(&ask{address: "10.0.0.1", remote: fmt.Sprintf("10.0.0.1:%d", i)})
	}
	limit.mu.Lock()
	defer limit.mu.Unlock()
	if n := limit.connections.Len(); n != badTokensConnections {
		t.Errorf("%d connections are remembered, want %d", n, badTokensConnections)
	}
	if n := len(limit.current("10.0.0.1").waiting); n > maxBadTokensWaiting {
		t.Errorf("%d requests wait, want at most %d", n, maxBadTokensWaiting)
	}
}
