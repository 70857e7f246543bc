// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxBadTokens is how many requests with a token may fail in one window before more from the address are refused.
	maxBadTokens = 100
	// badTokensWindow begins with the first failure.
	badTokensWindow = 10 * time.Second
	// badTokensAddresses bounds the memory for addresses.
	badTokensAddresses = 8192
)

var errTooManyBadTokens = errors.New("too many requests with an invalid token came from this address; try again in 10 seconds")

// badTokens counts failures by the address of the client.
type badTokens struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	addresses *lru.Cache
}

type badTokensCount struct {
	since  time.Time
	failed int
}

// limitBadTokens keeps clients from making us ask the main API about one invented token after the other: these questions
// come before priority and fairness. Valid tokens do not count, and requests that kube-apiserver forwards carry none.
func limitBadTokens(next authenticator.Request, c clock.PassiveClock) authenticator.Request {
	bad := &badTokens{clock: c, addresses: lru.New(badTokensAddresses)}
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		if req.Header.Get("Authorization") == "" && req.Header.Get("Sec-Websocket-Protocol") == "" {
			return next.AuthenticateRequest(req)
		}
		address, _, err := net.SplitHostPort(req.RemoteAddr)
		if err != nil {
			address = req.RemoteAddr
		}
		if bad.exhausted(address) {
			return nil, false, errTooManyBadTokens
		}
		response, ok, err := next.AuthenticateRequest(req)
		if !ok {
			bad.count(address)
		}
		return response, ok, err
	})
}

func (b *badTokens) exhausted(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(address).failed >= maxBadTokens
}

func (b *badTokens) count(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.current(address)
	c.failed++
	b.addresses.Add(address, c)
}

// current is the count of the window that has not ended; a new one if there is none.
func (b *badTokens) current(address string) badTokensCount {
	if found, ok := b.addresses.Get(address); ok {
		if c := found.(badTokensCount); b.clock.Since(c.since) < badTokensWindow {
			return c
		}
	}
	return badTokensCount{since: b.clock.Now()}
}
