// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	testclock "k8s.io/utils/clock/testing"
)

func TestLimitBadTokens(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	asked := 0
	limited := limitBadTokens(authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		asked++
		if req.Header.Get("Authorization") == "Bearer good" {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}, true, nil
		}
		return nil, false, nil
	}), clock)
	// send returns how many of the requests were looked at.
	send := func(n int, address, token string) int {
		asked = 0
		for range n {
			req := httptest.NewRequest(http.MethodGet, "/apis", nil)
			req.RemoteAddr = address
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			_, ok, err := limited.AuthenticateRequest(req)
			if refused := errors.Is(err, errTooManyBadTokens); refused && ok {
				t.Error("a request was refused and accepted")
			}
		}
		return asked
	}
	got := []int{
		send(3*maxBadTokens, "10.0.0.1:1", "good"), // valid tokens do not count
		send(3*maxBadTokens, "10.0.0.1:2", ""),     // nor do requests without one
		send(3*maxBadTokens, "10.0.0.1:3", "bad"),
		send(1, "10.0.0.1:4", "good"), // the address is refused, whatever the port
		send(1, "10.0.0.1:5", ""),
		send(2, "10.0.0.2:1", "bad"), // others are not
	}
	clock.SetTime(clock.Now().Add(badTokensWindow))
	got = append(got, send(2, "10.0.0.1:6", "bad"))
	if diff := cmp.Diff([]int{3 * maxBadTokens, 3 * maxBadTokens, maxBadTokens, 0, 1, 2, 2}, got); diff != "" {
		t.Errorf("requests that were looked at (-want +got):\n%s", diff)
	}
}
