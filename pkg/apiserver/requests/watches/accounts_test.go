// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestOneWatchPerConnection has two service accounts of one namespace that begin watches with a connection each until they are refused. What
// the server uses stays below its limit, controllers get watches, and sets are created until both take too much.
func TestOneWatchPerConnection(t *testing.T) {
	tier.OnRequest(t, "measures the resident memory of a server with thousands of connections")
	const mib, most = 500, 4000
	s := startServer(t, fmt.Sprintf("GOMEMLIMIT=%dMiB", mib), serveGuarded+"=true")
	admin := s.client(true)
	for i := range 20 {
		s.do(t, admin, http.MethodPost, sets, largeSet(fmt.Sprintf("s%d", i)))
	}
	var bodies []io.Closer // a connection to which nothing refers is closed
	begin := func(user string) (code int, answer string) {
		response := s.request(t, s.client(true), http.MethodGet, sets+"?watch=true&fieldSelector=metadata.name%3Dnone", user, nil) //nolint:bodyclose // it is kept open
		if response.StatusCode != http.StatusOK {
			content, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			answer = string(content)
		}
		bodies = append(bodies, response.Body)
		return response.StatusCode, answer
	}
	n := 0
	for _, name := range []string{"first", "second"} {
		for ; n < most; n++ {
			if code, answer := begin("system:serviceaccount:team:" + name); code != http.StatusOK {
				if code != http.StatusTooManyRequests || !strings.Contains(answer, "watches already") {
					t.Errorf("code %d: %s", code, answer)
				}
				break
			}
		}
	}
	if n == 0 || n == most {
		t.Errorf("two accounts have %d watches", n)
	}
	for _, name := range []string{"kube-system:generic-garbage-collector", "jobset-system:jobset-controller-manager", "kueue-system:kueue-controller-manager"} {
		for range 20 {
			if code, answer := begin("system:serviceaccount:" + name); code != http.StatusOK {
				t.Errorf("%s: code %d: %s", name, code, answer)
				break
			}
		}
	}
	if peak := s.memory(t, "VmHWM"); peak > mib {
		t.Errorf("%d watches: the server used %.0f MiB at the peak, want at most %d", n, peak, mib)
	} else {
		t.Logf("%d watches: peak of %.0f MiB", n, peak)
	}
	s.fill(t, admin)
	// The limit in the manifests is a ninth larger. Pages of the file of etcd give way to it.
	if used := s.memory(t, "RssAnon"); used > mib/9*10 {
		t.Errorf("with as many sets as have room, the server uses %.0f MiB, want at most %d", used, mib/9*10)
	} else {
		t.Logf("with as many sets as have room: %.0f MiB", used)
	}
	runtime.KeepAlive(bodies)
}

// fill creates sets until one is refused, because watches have most of the memory.
func (s *server) fill(t *testing.T, admin *http.Client) {
	t.Helper()
	for n := range 500 {
		response := s.request(t, admin, http.MethodPost, sets, "admin", largeSet(fmt.Sprintf("more-%d", n)))
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case response.StatusCode == http.StatusCreated:
			continue
		case response.StatusCode != http.StatusInsufficientStorage || !strings.Contains(string(answer), " watches take ") || strings.Contains(string(answer), "delete JobSets"):
			t.Errorf("code %d: %s", response.StatusCode, answer)
		case n < 3:
			t.Errorf("only %d sets are created beside the watches", n)
		}
		t.Logf("%d sets are created beside the watches: %s", n, answer)
		return
	}
	t.Error("no creation is refused")
}
