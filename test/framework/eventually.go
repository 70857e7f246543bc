// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Between two checks there are at least pollInterval, at most longestPause, and twice the time that a check takes, so
// that checks which start programs leave the machine to what they wait for.
const (
	pollInterval = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// timeoutFactor is how many times longer than on a machine with two idle cores a check may take. It costs nothing while
// checks pass; what must be fast is measured by benchmarks.
const timeoutFactor = 5

// Eventually polls until the check passes.
func Eventually(t testing.TB, timeout time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), timeout, check); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// EventuallyNoProblem polls until the check returns an empty string. It may be used in a cleanup.
func EventuallyNoProblem(t testing.TB, timeout time.Duration, check func() (problem string)) {
	t.Helper()
	err := poll(context.WithoutCancel(t.Context()), timeout, func(context.Context) error {
		if problem := check(); problem != "" {
			return errors.New(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func poll(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	var last error
	timeout *= timeoutFactor
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var took time.Duration
	pause := wait.DelayFunc(func() time.Duration { return min(max(pollInterval, 2*took), longestPause) })
	err := pause.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		began := time.Now()
		last = check(ctx)
		took = time.Since(began)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s: %w: %v", timeout, err, last)
	}
	return nil
}
