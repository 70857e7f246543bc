// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
)

// InBatches calls do for 0 to n-1: one call, then two at a time, then four, up to the limit. It stops after the batch in
// which a call fails, so that a main API that refuses all of a thousand requests gets to see few of them. It returns the
// errors of that batch, in order.
func InBatches(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	for begin, size := 0, 1; begin < n; begin, size = begin+size, min(2*size, limit) {
		if err := ctx.Err(); err != nil {
			return err
		}
		size = min(size, n-begin)
		errs := make([]error, size)
		var running sync.WaitGroup
		for i := range size {
			running.Go(func() { errs[i] = do(ctx, begin+i) })
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}
