// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxBadTokens is how many requests with a token that is not known to be valid an address may send at once, and
	// badTokensPerSecond how many it may go on to send. Requests with a valid token do not count.
	maxBadTokens, badTokensPerSecond = 100, 10
	// maxBadTokensWaiting bounds the requests of an address that wait for their turn.
	maxBadTokensWaiting = 100
	// badTokensAddresses, badTokensKnown and badTokensConnections bound the memory for addresses, for valid tokens and for connections.
	badTokensAddresses, badTokensKnown, badTokensConnections = 8192, 8192, 16384
)

// BadTokens keeps clients from making us ask the main API about one invented token after the other: these questions
// come before priority and fairness.
//
// A valid token is never rejected because of other requests of its address. A token that was valid before passes at
// once, and its answer is cached. Any other takes a turn of its address, which it gives back if it is valid. When no
// turn is left, the request waits for the next one, and the connections of the address take turns: see turns. When too
// many wait, a request is asked to come again (429 with Retry-After), which is not an answer about the token.
type BadTokens struct {
	clock clock.WithDelayedExecution
	// key keeps the hashes of tokens from being of use to anybody.
	key []byte

	mu sync.Mutex
	// addresses have a *turns for each address.
	addresses *lru.Cache
	// known are the hashes of tokens that were valid when they were used last.
	known *lru.Cache
	// connections have a *connection for each remote address and port.
	connections *lru.Cache
	// number is the number of the last turn, or of the last connection that began to ask.
	number atomic.Int64
}

// ask is a request with a token.
type ask struct {
	// address is the address of the client, remote the same with its port.
	address, remote string
	token           [sha256.Size]byte
	known           bool
}

type askKey struct{}

// NewBadTokens returns what paces tokens.
func NewBadTokens(c clock.WithDelayedExecution) (*BadTokens, error) {
	b := &BadTokens{
		clock: c, key: make([]byte, sha256.Size), addresses: lru.New(badTokensAddresses), known: lru.New(badTokensKnown),
		connections: lru.New(badTokensConnections),
	}
	_, err := rand.Read(b.key)
	return b, err
}

// WithTurns lets requests with an unknown token wait for their turn. The authenticator that Limit returns must be behind it.
func (b *BadTokens) WithTurns(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := b.ask(req)
		if a == nil {
			next.ServeHTTP(w, req)
			return
		}
		if !a.known && !b.await(req.Context(), a) {
			if req.Context().Err() == nil {
				refuseTurn(w)
			}
			return
		}
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), askKey{}, a)))
	})
}

// Limit remembers which tokens are valid.
func (b *BadTokens) Limit(next authenticator.Request) authenticator.Request {
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
func (b *BadTokens) ask(req *http.Request) *ask {
	token := req.Header.Get("Authorization")
	if token == "" {
		token = req.Header.Get("Sec-Websocket-Protocol")
	}
	if token == "" {
		return nil
	}
	hash := hmac.New(sha256.New, b.key)
	_, _ = hash.Write([]byte(token))
	a := &ask{address: AddressOf(req.RemoteAddr), remote: req.RemoteAddr}
	hash.Sum(a.token[:0])
	b.mu.Lock()
	defer b.mu.Unlock()
	_, a.known = b.known.Get(a.token)
	return a
}

// AddressOf returns the address of a client; of version 6, its network of 64 bits, in which a client chooses its address.
func AddressOf(remote string) string {
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

func (b *BadTokens) remember(a *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.Add(a.token, nil)
	b.current(a.address).add(1)
}

// forget takes a turn for a request that had none: its token was revoked or has expired.
func (b *BadTokens) forget(a *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.Remove(a.token)
	b.current(a.address).add(-1)
}

// refuseTurn asks a client to come again. It is not 401: the token was not checked.
func refuseTurn(w http.ResponseWriter) {
	const seconds = 1
	status := apierrors.NewTooManyRequests(fmt.Sprintf("%d requests of this address with tokens that were not valid before wait to be "+
		"authenticated; try again", maxBadTokensWaiting), seconds).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}
