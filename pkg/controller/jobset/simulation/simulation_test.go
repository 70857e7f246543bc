// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// histories are run unless SIMULATION_HISTORIES says otherwise, as "make soak" does. They are enough to see every kind of event.
	histories = 25_000
	// shown is the number of steps that are printed of a history with a broken rule.
	shown = 60
)

// run lets one history happen. It returns the rule that was broken, if any.
func run(seed uint64, c mutant, trace *[]string) (seen tally, broken string) {
	var e *env
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(violation)
			if !ok {
				v = violation(fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
			}
			broken = string(v)
			if trace != nil && e != nil {
				broken += "\n" + describeSpec(e)
			}
		}
	}()
	e = newEnv(seed, c, trace)
	for range 20 + e.dice.IntN(120) {
		e.step()
	}
	e.stabilize()
	e.checkRest()
	e.seen[recreations] += e.creations - 1
	return e.seen, ""
}

// result is the result of many histories.
type result struct {
	seen tally
	done int
	// seed and broken are of one history with a broken rule.
	seed   uint64
	broken string
}

// runMany runs histories with seeds from first on, on all processors, until one breaks a rule.
func runMany(first uint64, n int, c mutant) result {
	var (
		next    atomic.Int64
		stop    atomic.Bool
		mu      sync.Mutex
		all     result
		workers sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var mine result
			for i := next.Add(1) - 1; i < int64(n) && !stop.Load(); i = next.Add(1) - 1 {
				seed := first + uint64(i)
				seen, broken := run(seed, c, nil)
				mine.done++
				mine.seen.add(&seen)
				if broken != "" {
					mine.seed, mine.broken = seed, broken
					stop.Store(true)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.done += mine.done
			all.seen.add(&mine.seen)
			// All seeds before a broken one have been handed out too, so the lowest is the same in every run.
			if mine.broken != "" && (all.broken == "" || mine.seed < all.seed) {
				all.seed, all.broken = mine.seed, mine.broken
			}
		})
	}
	workers.Wait()
	return all
}

// TestHistories runs random histories.
func TestHistories(t *testing.T) {
	if seed, given := number64(t, "SIMULATION_SEED"); given {
		var trace []string
		_, broken := run(seed, faultless, &trace)
		t.Logf("history %d:\n%s", seed, strings.Join(trace, "\n"))
		if broken != "" {
			t.Fatal(broken)
		}
		return
	}
	n := uint64(histories)
	if given, ok := number64(t, "SIMULATION_HISTORIES"); ok {
		n = given
	}
	// A history leaves little behind, so collecting it less often is cheap and saves a third of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	first, begin := firstSeed(t), time.Now()
	got := runMany(first, int(n), faultless)
	if got.broken != "" {
		t.Fatal(report(got, faultless))
	}
	took := time.Since(begin)
	t.Logf("%d histories from seed %d on in %.1fs: %.0f/s, %.0f decisions/s", got.done, first, took.Seconds(),
		float64(got.done)/took.Seconds(), float64(got.seen[syncs])/took.Seconds())
	t.Logf("they saw\n%s", &got.seen)
	got.seen[setsHeld], got.seen[heldResumed], got.seen[takeOvers] = 1, 1, 1 // TestRestores sees them
	if missing := got.seen.missing(); n >= histories && len(missing) > 0 {
		t.Errorf("the histories never saw: %s", strings.Join(missing, ", "))
	}
}

// report tells about a history with a broken rule. It has to happen again to be told.
func report(r result, c mutant) string {
	var trace []string
	_, again := run(r.seed, c, &trace)
	if broken, _, _ := strings.Cut(again, "\n"); broken != strings.SplitN(r.broken, "\n", 2)[0] {
		return fmt.Sprintf("history %d broke %s\nbut not when it was run again: %s", r.seed, r.broken, again)
	}
	steps := trace[max(0, len(trace)-shown):]
	return fmt.Sprintf("history %d broke %s\nlast %d of %d steps:\n%s\nto see it all: SIMULATION_SEED=%d go test -run TestHistories -v",
		r.seed, again, len(steps), len(trace), strings.Join(steps, "\n"), r.seed)
}

// firstSeed is the same in every run, so that only a change of the code makes a run fail. To look for other defects, set SIMULATION_FIRST.
func firstSeed(t *testing.T) uint64 {
	first, _ := number64(t, "SIMULATION_FIRST")
	return first
}

func number64(t *testing.T, variable string) (uint64, bool) {
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
