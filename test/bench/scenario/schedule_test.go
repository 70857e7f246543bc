// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScheduleDoesNotWaitForAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer time.Duration
		// calls are when they are made, in milliseconds, late by how much that is after they were due.
		calls, late []float64
		took        time.Duration
	}{
		"answers that are slower than calls": {
			answer: 15 * time.Millisecond, calls: []float64{0, 10, 20, 30}, late: []float64{0, 0, 0, 0}, took: 45 * time.Millisecond,
		},
		"all clients wait for answers": {
			answer: 50 * time.Millisecond, calls: []float64{0, 10, 50, 60}, late: []float64{0, 0, 30, 30}, took: 110 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				begin, calls := time.Now(), make([]float64, 4)
				result, err := schedule{every: 10 * time.Millisecond, n: 4, clients: 2}.run(t.Context(), func(_ context.Context, _, i int) error {
					mu.Lock()
					calls[i] = millis(time.Since(begin))
					mu.Unlock()
					time.Sleep(tc.answer)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.calls, calls); d != "" {
					t.Errorf("calls (-want +got):\n%s", d)
				}
				if d := cmp.Diff(tc.late, result.late); d != "" || result.took != tc.took {
					t.Errorf("took %v, want %v; late (-want +got):\n%s", result.took, tc.took, d)
				}
			})
		})
	}
}

func TestScheduleNamesTheFirstFailure(t *testing.T) {
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		_, err := schedule{every: time.Millisecond, n: 5, clients: 1}.run(t.Context(), func(_ context.Context, _, i int) error {
			if i > 2 {
				return refused
			}
			return nil
		})
		if !errors.Is(err, refused) || !strings.Contains(err.Error(), "2 of 5 requests failed") {
			t.Errorf("error %v, must say that 2 of 5 were refused", err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (schedule{every: time.Hour, n: 5, clients: 1}).run(cancelled, func(context.Context, int, int) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v after an interrupt", err)
		}
	})
}
