// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxBadTokens is how many requests with a token that is not known to be valid an address may send at once, and
	// badTokensPerSecond how many it may go on to send. Requests with a valid token do not count.
	maxBadTokens, badTokensPerSecond = 100, 10
	// maxBadTokensWaiting bounds the requests of an address that wait for their turn: the last one waits for 10 seconds.
	maxBadTokensWaiting = 100
	// badTokensAddresses and badTokensKnown bound the memory for addresses and for valid tokens.
	badTokensAddresses, badTokensKnown = 8192, 8192
)

// badTokens keeps clients from making us ask the main API about one invented token after the other: these questions
// come before priority and fairness.
//
// A valid token is never rejected because of other requests of its address. A token that was valid before passes at
// once, and its answer is cached. Any other takes a turn of its address, which it gives back if it is valid. When no
// turn is left, the request waits for the next one; when too many wait, it is asked to come again (429 with
// Retry-After), which is not an answer about the token.
type badTokens struct {
	clock clock.Clock
	// key keeps the hashes of tokens from being of use to anybody.
	key []byte

	mu sync.Mutex
	// addresses have a *turns for each address.
	addresses *lru.Cache
	// known are the hashes of tokens that were valid when they were used last.
	known *lru.Cache
}

// turns counts the turns that an address has left at a time. Below 0, it counts the requests that wait for a turn.
type turns struct {
	left float64
	at   time.Time
}

// ask is a request with a token.
type ask struct {
	address string
	token   [sha256.Size]byte
	known   bool
}

type askKey struct{}

func newBadTokens(c clock.Clock) (*badTokens, error) {
	b := &badTokens{clock: c, key: make([]byte, sha256.Size), addresses: lru.New(badTokensAddresses), known: lru.New(badTokensKnown)}
	_, err := rand.Read(b.key)
	return b, err
}

// withTurns lets requests with an unknown token wait for their turn. The authenticator that limit returns must be behind it.
func (b *badTokens) withTurns(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := b.ask(req)
		if a == nil {
			next.ServeHTTP(w, req)
			return
		}
		if !a.known {
			wait, ok := b.take(a.address)
			if !ok {
				refuseTurn(w, wait)
				return
			}
			if !b.wait(req.Context(), wait) {
				b.giveBack(a.address)
				return // the client has gone
			}
		}
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), askKey{}, a)))
	})
}

// limit remembers which tokens are valid.
func (b *badTokens) limit(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(req)
		a, _ := req.Context().Value(askKey{}).(*ask)
		switch {
		case a == nil:
		case !ok && a.known:
			b.forget(a)
		case ok && !a.known:
			b.remember(a)
		}
		return response, ok, err
	})
}

// ask returns nil for a request without a token, such as those that kube-apiserver forwards.
func (b *badTokens) ask(req *http.Request) *ask {
	token := req.Header.Get("Authorization")
	if token == "" {
		token = req.Header.Get("Sec-Websocket-Protocol")
	}
	if token == "" {
		return nil
	}
	hash := hmac.New(sha256.New, b.key)
	_, _ = hash.Write([]byte(token))
	a := &ask{address: addressOf(req.RemoteAddr)}
	hash.Sum(a.token[:0])
	b.mu.Lock()
	defer b.mu.Unlock()
	_, a.known = b.known.Get(a.token)
	return a
}

// addressOf returns the address of a client; of version 6, its network of 64 bits, in which a client chooses its address.
func addressOf(remote string) string {
	port, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := port.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}

// take takes a turn, and returns how long to wait for it; if too many wait, how long until fewer do.
func (b *badTokens) take(address string) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.current(address)
	if t.left <= -maxBadTokensWaiting {
		return time.Second, false
	}
	t.left--
	return time.Duration(max(-t.left, 0) / badTokensPerSecond * float64(time.Second)), true
}

func (b *badTokens) giveBack(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.current(address)
	t.left = min(t.left+1, maxBadTokens)
}

func (b *badTokens) remember(a *ask) {
	b.giveBack(a.address)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.Add(a.token, nil)
}

// forget takes a turn for a request that had none: its token was revoked or has expired.
func (b *badTokens) forget(a *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.Remove(a.token)
	t := b.current(a.address)
	t.left = max(t.left-1, -maxBadTokensWaiting)
}

// current are the turns of an address now.
func (b *badTokens) current(address string) *turns {
	now := b.clock.Now()
	if found, ok := b.addresses.Get(address); ok {
		t := found.(*turns)
		t.left, t.at = min(t.left+now.Sub(t.at).Seconds()*badTokensPerSecond, maxBadTokens), now
		return t
	}
	t := &turns{left: maxBadTokens, at: now}
	b.addresses.Add(address, t)
	return t
}

// wait returns false if the client has gone.
func (b *badTokens) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// refuseTurn asks a client to come again. It is not 401: the token was not checked.
func refuseTurn(w http.ResponseWriter, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	status := apierrors.NewTooManyRequests(fmt.Sprintf("%d requests of this address with tokens that were not valid before wait to be "+
		"authenticated; try again", maxBadTokensWaiting), seconds).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}
