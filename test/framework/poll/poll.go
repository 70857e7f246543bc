// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poll waits in unit tests for something that must only happen. It imports nothing, so that tests which wait link no more.
// Where a bubble of testing/synctest can fake the time, it is the better choice.
package poll

import (
	"testing"
	"time"
)

// Between two checks is a pause. A test that fails does so reportTime before the deadline of the program, so that its message is seen.
const (
	pause      = 10 * time.Millisecond
	reportTime = 30 * time.Second
)

// noDeadline is how long a test waits that runs without a deadline.
const noDeadline = 20 * time.Minute

// Until polls until the condition holds, and fails the test shortly before the deadline of the program.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Bound(t)); !holds(); time.Sleep(pause) {
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Fatalf("waiting until %s: not in time", what)
		}
	}
}

// UntilNil polls until the check returns no error, and fails the test with the last error shortly before the deadline of the program.
func UntilNil(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	for end := time.Now().Add(Bound(t)); ; time.Sleep(pause) {
		if last = check(); last == nil {
			return
		}
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Fatalf("waiting until %s: %v", what, last)
		}
	}
}

// Receive returns the next value of a channel, and false once it is closed.
func Receive[T any](t testing.TB, what string, from <-chan T) (T, bool) {
	t.Helper()
	select {
	case value, open := <-from:
		return value, open
	case <-time.After(Bound(t)):
		t.Fatalf("waiting for %s: not in time", what)
		panic("unreachable")
	}
}

// Bound is how long a test may wait for a single thing.
func Bound(t testing.TB) time.Duration {
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			return max(time.Until(deadline)-reportTime, 0)
		}
	}
	return noDeadline
}
