// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
)

// answers is an API that is at a version, and answers lists with a code.
type answers struct {
	at    int
	code  int
	away  bool
	lists int
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.away {
		return nil, errors.New("connection refused")
	}
	code := http.StatusOK
	if req.URL.Query().Get("limit") == "1" {
		a.lists++
		code = a.code
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, a.at)))}, nil
}

// TestWatchesAreCompared has several watches of a path, of which one may have seen more than the others.
func TestWatchesAreCompared(t *testing.T) {
	api, clock := &answers{at: 100, code: http.StatusOK}, testclock.NewFakePassiveClock(time.Now())
	config := &rest.Config{}
	config.Wrap(wrapper(clock))
	client := config.WrapTransport(api)
	send := func(query string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://main/api/v1/"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	watch := func(step, query string, wantCode, wantLists int) {
		t.Helper()
		before := api.lists
		code, err := send(query)
		if err != nil || code != wantCode || api.lists-before != wantLists {
			t.Errorf("%s: code %d and %d lists, want %d and %d; error %v", step, code, api.lists-before, wantCode, wantLists, err)
		}
	}
	fail := func() {
		t.Helper()
		api.away = true
		if _, err := send("pods?watch=true&resourceVersion=100"); err == nil {
			t.Fatal("no error of an API that is away")
		}
		api.away = false
	}
	watch("before anything failed", "pods?watch=true&resourceVersion=100", 200, 0)
	fail()
	api.at = 110
	watch("a watch of an earlier version", "pods?watch=true&resourceVersion=100", 200, 1)
	watch("another one of a later version", "pods?watch=true&resourceVersion=120&labelSelector=a", 410, 1)
	watch("the same again", "pods?watch=true&resourceVersion=120&labelSelector=a", 410, 1)
	watch("after its list", "pods?watch=true&resourceVersion=110&labelSelector=a", 200, 0)
	watch("another path", "services?watch=true&resourceVersion=110", 200, 1)
	watch("one that begins with a list", "jobs?watch=true&resourceVersion=120&sendInitialEvents=true", 200, 0)
	watch("a list", "jobs?resourceVersion=120", 200, 0)
	api.at = 130
	watch("a later version, soon after", "pods?watch=true&resourceVersion=125", 200, 1)
	api.at = 150
	clock.SetTime(clock.Now().Add(watchesBegin))
	watch("a later version, when all watches have begun", "pods?watch=true&resourceVersion=140", 200, 0)
	fail()
	watch("after another failure", "pods?watch=true&resourceVersion=140", 200, 1)
	fail()
	// A kube-apiserver that has just started does not know all roles, service accounts and resources yet.
	for _, api.code = range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		watch("an API that is not ready", "pods?watch=true&resourceVersion=160", api.code, 1)
	}
	api.code = http.StatusOK
	watch("when it is ready", "pods?watch=true&resourceVersion=160", 410, 1)
}
