// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite runs the tests of a package around the setup and the cleanup of what they share. A suite without a test to run fails:
// it would prove nothing, although its setup and its cleanup succeed.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// Main calls run and exits with the code that it returns, or with 1 after an error.
func Main(name string, run func() (code int, err error)) {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// Run runs the tests until they end or the context is cancelled, so that an interrupt leaves time for the cleanup. It fails if no test
// is selected.
func Run(ctx context.Context, m *testing.M) (int, error) {
	if err := Check(m); err != nil {
		return 0, err
	}
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code := <-done:
		return code, nil
	case <-ctx.Done():
		return 0, errors.New("interrupted")
	}
}
