// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestWatchesOfDifferingEvents opens watches that are not read, each of which waits with another version of a set of 1.3 MB: the fourth set
// does not fit into what a client of HTTP/2 takes without being read. Watches do not share what they encode then, and their number and the
// time that a write may take leave too much: without a bound in bytes, the server refused more than half of the writes for lack of memory.
func TestWatchesOfDifferingEvents(t *testing.T) {
	tier.OnRequest(t, "a server with hundreds of watches")
	const watches = 350
	s := startServer(t, "GOMEMLIMIT="+limit, serveGuarded+"=true")
	admin := s.client(true)
	for i := range 5 {
		s.do(t, admin, http.MethodPost, sets, largeSet(fmt.Sprintf("s%d", i)))
	}
	bodies := make([]io.ReadCloser, watches) // a connection to which nothing refers is closed
	var client *http.Client
	for i := range watches {
		if i%50 == 0 {
			client = s.client(true)
		}
		s.do(t, admin, http.MethodPatch, sets+"/s3", fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i))
		bodies[i] = s.request(t, client, http.MethodGet, sets+"?watch=true", "mallory", nil).Body //nolint:bodyclose // the test does not read it
	}
	runtime.KeepAlive(bodies)
}
