// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
)

// tokenServer authenticates requests behind the limit.
type tokenServer struct {
	http.Handler
	limit *BadTokens
	// asked is how often the main API was asked, and revoked are tokens that were valid.
	asked   atomic.Int32
	revoked sync.Map
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	limit, err := NewBadTokens(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	s := &tokenServer{limit: limit}
	authenticate := limit.Limit(authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		token := req.Header.Get("Authorization")
		req.Header.Del("Authorization") // as the library does
		if token == "" {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "forwarded"}}, true, nil
		}
		s.asked.Add(1)
		if _, revoked := s.revoked.Load(token); !revoked && len(token) > len("Bearer good") && token[:len("Bearer good")] == "Bearer good" {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}, true, nil
		}
		return nil, false, nil
	}))
	s.Handler = limit.WithTurns(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, ok, err := authenticate.AuthenticateRequest(req); !ok || err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	return s
}

// send returns the status code, and how long the answer took.
func (s *tokenServer) send(ctx context.Context, address, token string) (*httptest.ResponseRecorder, time.Duration) {
	begin := time.Now()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil)
	req.RemoteAddr = address
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w, time.Since(begin)
}

// flood sends so many invalid tokens at the same time on one connection, waits until all are answered or wait, and returns
// a function that waits for all answers.
func (s *tokenServer) flood(n int, address string) (answers func() map[int]int) {
	return s.floodFrom(n, func(int) string { return address })
}

// floodFrom is the same on several connections.
func (s *tokenServer) floodFrom(n int, address func(i int) string) (answers func() map[int]int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range n {
		group.Go(func() {
			w, _ := s.send(context.Background(), address(i), fmt.Sprintf("bad-%d", i))
			mu.Lock()
			defer mu.Unlock()
			codes[w.Code]++
		})
	}
	synctest.Wait()
	return func() map[int]int {
		group.Wait()
		return codes
	}
}

// TestValidTokenBesideInvalidOnes is the attack: 130 invalid tokens of an address once made its valid tokens fail for 10 seconds.
func TestValidTokenBesideInvalidOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		if w, _ := s.send(t.Context(), "10.0.0.1:1", "good-old"); w.Code != http.StatusOK {
			t.Fatalf("answered %d before the attack", w.Code)
		}
		answers := s.flood(130, "10.0.0.1:2")
		if asked := s.asked.Load(); asked != 1+maxBadTokens {
			t.Errorf("the main API was asked %d times at once, want %d", asked, 1+maxBadTokens)
		}
		for name, c := range map[string]struct {
			address, token string
			most           time.Duration
		}{
			"a token that was valid before":   {"10.0.0.1:3", "good-old", 0},
			"a new token":                     {"10.0.0.1:4", "good-new", 200 * time.Millisecond},
			"a new token from elsewhere":      {"10.0.0.2:5", "good-other", 0},
			"a request without a token":       {"10.0.0.1:6", "", 0},
			"a token that is used once again": {"10.0.0.1:7", "good-old", 0},
		} {
			if w, took := s.send(t.Context(), c.address, c.token); w.Code != http.StatusOK || took > c.most {
				t.Errorf("%s: answered %d after %v, want 200 within %v", name, w.Code, took, c.most)
			}
		}
		if codes := answers(); codes[http.StatusUnauthorized] != 130 {
			t.Errorf("invalid tokens got %v", codes)
		}
	})
}

// TestInvalidTokensArePaced counts the questions that one address can cause.
func TestInvalidTokensArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		answers := s.flood(1000, "10.0.0.1:1")
		if codes := answers(); codes[http.StatusTooManyRequests] != 1000-maxBadTokens-maxBadTokensWaiting || codes[http.StatusUnauthorized] != maxBadTokens+maxBadTokensWaiting {
			t.Errorf("invalid tokens got %v", codes)
		}
		time.Sleep(time.Minute)
		if left := s.limit.current("10.0.0.1").Free(); left != maxBadTokens {
			t.Errorf("%v turns are left after a minute, want %d", left, maxBadTokens)
		}
	})
}

func TestTooManyWaitingIsNoAnswerAboutTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		answers := s.floodFrom(maxBadTokens+maxBadTokensWaiting, func(i int) string { return fmt.Sprintf("[2001:db8::1]:%d", i+1) })
		w, _ := s.send(t.Context(), "[2001:db8::2]:1", "good-new") // of the same network
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || status.Reason != metav1.StatusReasonTooManyRequests || status.Details.RetryAfterSeconds != 1 {
			t.Errorf("answered %d: %s", w.Code, w.Body)
		}
		time.Sleep(time.Second)
		if w, _ := s.send(t.Context(), "[2001:db8::2]:1", "good-new"); w.Code != http.StatusOK {
			t.Errorf("answered %d after Retry-After", w.Code)
		}
		answers()
	})
}

func TestClientsThatGoGiveTheirTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		s.flood(maxBadTokens, "10.0.0.1:1")()
		ctx, cancel := context.WithCancel(t.Context())
		go s.send(ctx, "10.0.0.1:1", "bad")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if left := s.limit.current("10.0.0.1").Free(); left != 0 {
			t.Errorf("%v turns are left, want 0", left)
		}
		if asked := s.asked.Load(); asked != maxBadTokens {
			t.Errorf("the main API was asked %d times", asked)
		}
	})
}

// TestRevokedTokenIsForgotten shows that a token that was valid once is not a way past the limit.
func TestRevokedTokenIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTokenServer(t)
		for range 3 * maxBadTokens {
			if w, _ := s.send(t.Context(), "10.0.0.1:1", "good-old"); w.Code != http.StatusOK {
				t.Fatalf("answered %d", w.Code)
			}
		}
		s.revoked.Store("Bearer good-old", true)
		for range maxBadTokens {
			s.send(t.Context(), "10.0.0.1:1", "good-old")
		}
		if w, took := s.send(t.Context(), "10.0.0.1:1", "good-old"); w.Code != http.StatusUnauthorized || took != time.Second/badTokensPerSecond {
			t.Errorf("answered %d after %v", w.Code, took)
		}
	})
}
