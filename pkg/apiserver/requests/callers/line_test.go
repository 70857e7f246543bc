// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestLine has callers wait for units, and end or give way meanwhile.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := map[int]int64{}
		l := NewLine(4, func(a, b int) bool { return a < b }, func(caller int, units int64) { given[caller] += units })
		var mu sync.Mutex
		var ends []string
		waits := func(caller int, units int64) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				end := fmt.Sprint(caller, " ", l.Enter(caller, units).Wait(ctx))
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, end)
			}()
			synctest.Wait()
			return func() {
				cancel()
				synctest.Wait()
			}
		}
		check := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if slices.Sort(ends); !slices.Equal(ends, want) {
				t.Errorf("%q, want %q", ends, want)
			}
			ends = nil
		}
		waits(9, 4)
		check("9 true")
		waits(8, 1)
		waits(7, 3)
		ends5 := waits(5, 4)
		waits(6, 1)
		l.Release(9, 3) // the first one by the order needs one more
		check()
		ends5() // so that others do
		check("5 false", "6 true")
		if !l.GiveWay(func(waiting []int) int { return slices.Index(waiting, 7) }) || l.GiveWay(func([]int) int { return -1 }) {
			t.Error("the one that is chosen gives way, and no other one")
		}
		check("7 false", "8 true")
		l.Add(5, -2, 3)
		if l.Free() != 3 || l.Len() != 0 {
			t.Errorf("%d units are free and %d callers wait, want 3 and none", l.Free(), l.Len())
		}
		l.Add(-9, -2, 3)
		waits(1, 1)
		l.Add(2, -2, 3)
		check()
		l.Add(1, -2, 3)
		check("1 true")
		if want := map[int]int64{9: 1, 8: 1, 6: 1, 1: 1}; fmt.Sprint(given) != fmt.Sprint(want) {
			t.Errorf("given %v, want %v", given, want)
		}
	})
}
