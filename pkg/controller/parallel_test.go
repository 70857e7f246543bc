// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

func TestPace(t *testing.T) {
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
		"one at a time": {n: 5, limit: 1, fail: []int{3}, want: 4, wantErr: "call 3: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls recorder
			err := NewPace(tc.limit).Do(t.Context(), owner, tc.n, func(_ context.Context, i int) error {
				defer calls.begin(i)()
				if slices.Contains(tc.fail, i) {
					return fmt.Errorf("call %d: %w", i, refused)
				}
				return nil
			})
			if d := cmp.Diff(upTo(tc.want), calls.sorted()); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if calls.most > tc.limit {
				t.Errorf("%d calls at a time, more than %d", calls.most, tc.limit)
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

// Each success allows one call more, at once: no call waits for others to end.
func TestPaceGrowsWithSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, refused := NewPace(50), errors.New("refused")
		var calls recorder
		roundTrip := func(_ context.Context, i int) error {
			defer calls.begin(i)()
			time.Sleep(time.Millisecond)
			if i == 30 {
				return refused
			}
			return nil
		}
		took := func(n int) time.Duration {
			begin := time.Now()
			_ = pace.Do(t.Context(), owner, n, roundTrip)
			return time.Since(begin)
		}
		if d := cmp.Diff(4*time.Millisecond, took(15)); d != "" {
			t.Errorf("time of 1, 2, 4 and 8 calls (-want +got):\n%s", d)
		}
		if d := cmp.Diff(time.Millisecond, took(16)); d != "" {
			t.Errorf("time of 16 calls when 15 have succeeded before (-want +got):\n%s", d)
		}
		// Call 30 is refused: what is under way then is ended, and the next time begins with one call.
		took(31)
		if d := cmp.Diff(2*time.Millisecond, took(2)); d != "" {
			t.Errorf("time of 2 calls after a failure (-want +got):\n%s", d)
		}
		took(15)
		pace.Forget(owner)
		if d := cmp.Diff(2*time.Millisecond, took(2)); d != "" {
			t.Errorf("time of 2 calls for an owner that was forgotten (-want +got):\n%s", d)
		}
	})
}

func TestPaceEndsWhatWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, refused := NewPace(4), errors.New("refused")
		var calls recorder
		err := pace.Do(t.Context(), owner, 100, func(_ context.Context, i int) error {
			defer calls.begin(i)()
			time.Sleep(time.Millisecond)
			switch {
			case i == 3:
				return fmt.Errorf("call 3: %w", refused)
			case i > 3:
				time.Sleep(time.Hour)
			}
			if i == 5 {
				return fmt.Errorf("call 5: %w", refused)
			}
			return nil
		})
		// Calls 3 to 6 are under way together.
		if d := cmp.Diff("call 3: refused\ncall 5: refused", fmt.Sprint(err)); d != "" {
			t.Errorf("error (-want +got):\n%s", d)
		}
		if d := cmp.Diff(upTo(7), calls.sorted()); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
	})
}

func TestPaceStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := NewPace(1).Do(ctx, owner, 10, func(context.Context, int) error {
		calls++
		cancel()
		return nil
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls and error %v, want 1 call and %v", calls, err, context.Canceled)
	}
}

var owner = cache.NewObjectName("default", "train")

// recorder notes which calls were made, and how many of them at a time.
type recorder struct {
	mu            sync.Mutex
	calls         []int
	running, most int
}

func (r *recorder) begin(i int) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, i)
	r.running++
	r.most = max(r.most, r.running)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
	}
}

func (r *recorder) sorted() []int { return append([]int{}, slices.Sorted(slices.Values(r.calls))...) }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
