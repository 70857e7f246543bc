// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// Violation is the panic that ends a history with a broken rule.
type Violation string

// Guarded lets a history happen, and returns the rule that it broke, if any. A panic of the controller is a broken rule.
func Guarded(history func()) (broken string) {
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(Violation)
			if !ok {
				v = Violation(fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
			}
			broken = string(v)
		}
	}()
	history()
	return ""
}

// Result is the result of many histories.
type Result struct {
	// Seen counts what happened in them, by its name.
	Seen map[string]int
	// Done is their number.
	Done int
	// Seed and Broken are of one history with a broken rule.
	Seed   uint64
	Broken string
}

// RunMany runs histories with seeds from first on, on all processors, until one breaks a rule.
func RunMany(first uint64, n int, run func(seed uint64) (seen map[string]int, broken string)) Result {
	var (
		next    atomic.Int64
		stop    atomic.Bool
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	all := Result{Seen: map[string]int{}}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && !stop.Load(); i = next.Add(1) - 1 {
				seed := first + uint64(i)
				seen, broken := run(seed)
				mu.Lock()
				all.Done++
				for what, n := range seen {
					all.Seen[what] += n
				}
				// All seeds before a broken one have been handed out too, so the lowest is the same in every run.
				if broken != "" && (all.Broken == "" || seed < all.Seed) {
					all.Seed, all.Broken = seed, broken
				}
				mu.Unlock()
				if broken != "" {
					stop.Store(true)
				}
			}
		})
	}
	workers.Wait()
	return all
}

// Number returns the number in an environment variable.
func Number(t *testing.T, variable string) (uint64, bool) {
	t.Helper()
	value, given := os.LookupEnv(variable)
	if !given {
		return 0, false
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s must be a number of 0 or more, not %q", variable, value)
	}
	return n, true
}
