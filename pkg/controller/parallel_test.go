// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInBatches(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		n, limit int
		fail     []int
		want     int
		wantErr  string
	}{
		"nothing to do": {n: 0, limit: 4, want: 0},
		"everything is done, more than the limit":  {n: 23, limit: 4, want: 23},
		"the first failure ends it after one call": {n: 100, limit: 50, fail: []int{0}, want: 1, wantErr: "call 0: refused"},
		"a batch that has begun is finished":       {n: 100, limit: 50, fail: []int{3, 5}, want: 7, wantErr: "call 3: refused\ncall 5: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var done []int
			var running, most atomic.Int32
			err := InBatches(context.Background(), tc.n, tc.limit, func(_ context.Context, i int) error {
				now := running.Add(1)
				defer running.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				most.Store(max(most.Load(), now))
				done = append(done, i)
				if slices.Contains(tc.fail, i) {
					return fmt.Errorf("call %d: %w", i, refused)
				}
				return nil
			})
			slices.Sort(done)
			want := make([]int, 0, tc.want)
			for i := range tc.want {
				want = append(want, i)
			}
			if d := cmp.Diff(want, append([]int{}, done...)); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if most.Load() > int32(tc.limit) {
				t.Errorf("%d calls at a time, more than %d", most.Load(), tc.limit)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tc.wantErr, got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}

func TestInBatchesStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err := InBatches(ctx, 10, 1, func(context.Context, int) error {
		calls++
		cancel()
		return nil
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls and error %v, want 1 call and %v", calls, err, context.Canceled)
	}
}
