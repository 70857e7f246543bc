// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestReadsDoNotWaitForOneThatHangs(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	var checks batches
	checks.read = func() error {
		return redundantly(t.Context(), func(ctx context.Context) error {
			if reads.Add(1)%3 == 1 { // one of three members hangs
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
	}
	for range 5 {
		if err := checks.do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadsFailWhenAllFail(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	failure := errors.New("no leader")
	release := make(chan struct{})
	err := redundantly(t.Context(), func(context.Context) error {
		if reads.Add(1) == maxReads {
			close(release)
		}
		<-release
		return failure
	})
	if !errors.Is(err, failure) || reads.Load() != maxReads {
		t.Errorf("%d reads ended with %v, must be %d with %v", reads.Load(), err, maxReads, failure)
	}
}
