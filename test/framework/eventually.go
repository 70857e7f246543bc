// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// Between two checks there are at least pollInterval, at most longestPause, and twice the time that a check takes, so
// that checks which start programs leave the machine to what they wait for.
const (
	pollInterval = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// What must happen may take as long as the machine needs. The bounds only keep one test that fails from using up the time of all others.
const (
	longestWait       = 5 * time.Minute
	longestWaitOfLong = 20 * time.Minute
	// reportTime is left before the deadline of the tests for messages and cleanups.
	reportTime = 30 * time.Second
)

// StepTimeout is how long a step may take that has no time of its own: much longer than on an idle machine. It costs nothing while tests
// pass. What must be fast is measured by benchmarks.
func StepTimeout() time.Duration {
	if tier.Long() {
		return longestWaitOfLong
	}
	return longestWait
}

// stepTimeout is StepTimeout, but ends before the deadline of the tests.
func stepTimeout(t testing.TB) time.Duration {
	limit := StepTimeout()
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			limit = min(limit, time.Until(deadline)-reportTime)
		}
	}
	return limit
}

// Eventually polls until the check passes. What the check must not do is to end the test: see Test.
func Eventually(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), stepTimeout(t), check); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// EventuallyNoProblem polls until the check returns an empty string. It may be used in a cleanup.
func EventuallyNoProblem(t testing.TB, check func() (problem string)) {
	t.Helper()
	err := poll(context.WithoutCancel(t.Context()), stepTimeout(t), func(context.Context) error {
		if problem := check(); problem != "" {
			return errors.New(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// poll returns what was wrong last. After the time is over, it checks once more: a machine that stood still must not fail the test.
func poll(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		over := ctx.Err() != nil
		began := time.Now()
		err := attempt(func() error { return check(ctx) })
		if err == nil {
			return nil
		}
		// A request that ends with the time says no more than that. The error before it says what is missing.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if over {
			return fmt.Errorf("after %s: %w", limit, last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(max(pollInterval, 2*time.Since(began)), longestPause)):
		}
	}
}
