// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Skew measures by how much the clock of a server is ahead of that of this machine, by the headers of its answers. Its
// zero value is ready to use.
type Skew struct{ last atomic.Int64 }

// Last returns what the last answer said; 0 before the first one.
func (s *Skew) Last() time.Duration { return time.Duration(s.last.Load()) }

// Wrap returns a transport whose answers are measured.
func (s *Skew) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		begin := time.Now()
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			s.last.Store(int64(apart(date, begin, time.Now())))
		}
		return response, nil
	})
}

// apart returns how far a time is from the interval in which it was taken; it has whole seconds.
func apart(date, begin, end time.Time) time.Duration {
	switch {
	case date.Add(time.Second).Before(begin):
		return date.Add(time.Second).Sub(begin)
	case date.After(end):
		return date.Sub(end)
	}
	return 0
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
