// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// helper stands for what embeds a Test.
type helper struct {
	Test
	name string
}

func (h helper) must(ok bool) {
	h.Helper()
	if !ok {
		h.Fatalf("%s failed", h.name)
	}
}

func TestErrorsInACheckAreProblemsOfTheCheck(t *testing.T) {
	test := Test{t}
	for name, end := range map[string]func(){
		"Error":   func() { test.Error("no", "answer") },
		"Errorf":  func() { test.Errorf("no %s", "answer") },
		"Fatal":   func() { test.Fatal("no", "answer") },
		"Fatalf":  func() { test.Fatalf("no %s", "answer") },
		"Fail":    test.Fail,
		"FailNow": test.FailNow,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				check := func(context.Context) error {
					if tries++; tries < 3 {
						end()
						t.Error("the check goes on after its end")
					}
					return nil
				}
				if err := poll(t.Context(), time.Minute, check); err != nil || tries != 3 {
					t.Errorf("%d tries: %v", tries, err)
				}
				tries = -1000
				err := poll(t.Context(), time.Minute, check)
				if want := map[bool]string{true: "the check has failed", false: "no answer"}[strings.HasPrefix(name, "Fail")]; err == nil || err.Error() != "after 1m0s: "+want {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		})
	}
	if len(checks.of) != 0 {
		t.Errorf("checks are left: %v", checks.of)
	}
}

func TestCopiesOfATestAreInTheSameCheck(t *testing.T) {
	one := helper{Test{t}, "one"}
	other := one
	other.name = "other"
	err := attempt(func() error { other.must(false); return nil })
	if err == nil || err.Error() != "other failed" {
		t.Error(err)
	}
}

func TestCheckWithinACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outer, inner := helper{Test{t}, "the helper"}, 0, 0
		err := poll(t.Context(), time.Hour, func(context.Context) error {
			outer++
			// Only the inner check is repeated.
			if err := poll(t.Context(), time.Minute, func(context.Context) error {
				inner++
				h.must(inner%3 == 0)
				return nil
			}); err != nil {
				return err
			}
			h.must(outer == 2) // which is in the outer check again
			return nil
		})
		if err != nil || outer != 2 || inner != 6 {
			t.Errorf("%d outer and %d inner checks: %v", outer, inner, err)
		}
	})
}

// TestOtherGoroutinesFailTheTest checks that an error in a goroutine that is not that of the check neither ends the program nor is lost.
func TestOtherGoroutinesFailTheTest(t *testing.T) {
	_ = attempt(func() error {
		done := make(chan struct{})
		go func() {
			defer close(done)
			failed("beside the check") // a panic, which nothing recovers, if it took this goroutine for that of the check
		}()
		<-done
		return nil
	})
	failed("after the check")
}

func TestPanicsOfACheckArePanics(t *testing.T) {
	defer func() {
		if problem := recover(); problem != "a mistake" {
			t.Errorf("recovered %v", problem)
		}
		if len(checks.of) != 0 {
			t.Errorf("checks are left: %v", checks.of)
		}
	}()
	_ = attempt(func() error { panic("a mistake") })
}

func TestPollChecksOnceMoreWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stoodStill := false
		if err := poll(t.Context(), time.Minute, func(context.Context) error {
			if !stoodStill {
				stoodStill = true
				time.Sleep(time.Hour)
				return errors.New("not yet")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestPollReturnsTheErrorOfBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := poll(t.Context(), time.Minute, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return errors.New("no pods")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || err.Error() != "after 1m0s: no pods" {
			t.Error(err)
		}
	})
}

// limited is a test with a deadline.
type limited struct {
	testing.TB
	left time.Duration
}

func (l limited) Deadline() (time.Time, bool) { return time.Now().Add(l.left), true }

func TestPatienceEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{time.Hour: StepTimeout(), time.Minute: 30 * time.Second} {
			if got := stepTimeout(limited{t, left}); got != want {
				t.Errorf("%s before the deadline it is %s, want %s", left, got, want)
			}
		}
	})
}
