// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

func TestSlowStart(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		n, limit int
		fail     []int
		wantErr  string
	}{
		"nothing to do": {n: 0, limit: 4},
		"everything is done, more than the limit": {n: 23, limit: 4},
		"a failure keeps no other call waiting":   {n: 100, limit: 50, fail: []int{0}, wantErr: "call 0: refused"},
		"one at a time":                           {n: 5, limit: 1, fail: []int{1, 3}, wantErr: "call 1: refused\ncall 3: refused"},
		"many failures":                           {n: 1000, limit: 50, fail: upTo(1000), wantErr: "call 0: refused\ncall 1: refused\ncall 2: refused\nand 997 more"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls recorder
			err := NewSlowStart(tc.limit).Do(t.Context(), owner, tc.n, func(_ context.Context, i int) error {
				defer calls.begin(i)()
				if slices.Contains(tc.fail, i) {
					return fmt.Errorf("call %d: %w", i, refused)
				}
				return nil
			})
			if d := cmp.Diff(upTo(tc.n), calls.sorted()); d != "" {
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
func TestSlowStartGrowsWithSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowStart, refused := NewSlowStart(50), errors.New("refused")
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
			_ = slowStart.Do(t.Context(), owner, n, roundTrip)
			return time.Since(begin)
		}
		if d := cmp.Diff(4*time.Millisecond, took(15)); d != "" {
			t.Errorf("time of 1, 2, 4 and 8 calls (-want +got):\n%s", d)
		}
		if d := cmp.Diff(time.Millisecond, took(16)); d != "" {
			t.Errorf("time of 16 calls when 15 have succeeded before (-want +got):\n%s", d)
		}
		// Call 30 is refused, alone: the next time begins with one call.
		took(30)
		slowStart.Forget(owner)
		if err := slowStart.Do(t.Context(), owner, 1, func(context.Context, int) error { return refused }); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if d := cmp.Diff(2*time.Millisecond, took(2)); d != "" {
			t.Errorf("time of 2 calls after a failure (-want +got):\n%s", d)
		}
		took(15)
		slowStart.Forget(owner)
		if d := cmp.Diff(2*time.Millisecond, took(2)); d != "" {
			t.Errorf("time of 2 calls for an owner that was forgotten (-want +got):\n%s", d)
		}
	})
}

// A main API that refuses all requests gets them one by one, however many were under way when it began to.
func TestSlowStartSlowsDownWithFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls recorder
		took := time.Duration(0)
		begin, refused := time.Now(), errors.New("refused")
		err := NewSlowStart(8).Do(t.Context(), owner, 33, func(_ context.Context, i int) error {
			defer calls.begin(i)()
			time.Sleep(time.Millisecond)
			if i < 15 { // 1, 2, 4 and 8 at a time
				return nil
			}
			took = time.Since(begin)
			return refused
		})
		// Eight calls are under way when the first one fails.
		if d := cmp.Diff((4+1+10)*time.Millisecond, took); d != "" || calls.most != 8 {
			t.Errorf("%d calls at a time, and the time of all (-want +got):\n%s", calls.most, d)
		}
		if !errors.Is(err, refused) {
			t.Errorf("error %v, want %v", err, refused)
		}
	})
}

func TestSlowStartIgnoresSkippedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowStart, begin := NewSlowStart(8), time.Now()
		skip := true
		call := func(context.Context, int) error {
			time.Sleep(time.Millisecond)
			if skip {
				return ErrSkipped
			}
			return nil
		}
		if err := slowStart.Do(t.Context(), owner, 5, call); err != nil {
			t.Errorf("error %v", err)
		}
		skip = false
		if err := slowStart.Do(t.Context(), owner, 3, call); err != nil {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff((5+2)*time.Millisecond, time.Since(begin)); d != "" {
			t.Errorf("time of 5 skipped calls, and of 1 and 2 calls (-want +got):\n%s", d)
		}
	})
}

// What is under way when the context ends gets time to end, and nothing new is begun.
func TestSlowStartStopsWithTheContext(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  error
	}{
		"calls that end soon": {requestGrace - time.Millisecond, nil},
		"calls that hang":     {time.Hour, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				calls := 0
				err := NewSlowStart(1).Do(ctx, owner, 10, func(ctx context.Context, _ int) error {
					calls++
					cancel()
					select {
					case <-time.After(tc.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if calls != 1 || !errors.Is(err, tc.want) {
					t.Errorf("%d calls and error %v, want 1 call and %v", calls, err, tc.want)
				}
			})
		})
	}
}

func TestSlowStartTurnsAPanicIntoAnError(t *testing.T) {
	var calls recorder
	err := NewSlowStart(4).Do(t.Context(), owner, 10, func(_ context.Context, i int) error {
		defer calls.begin(i)()
		if i == 2 {
			panic("no such thing")
		}
		return nil
	})
	if err == nil || err.Error() != "panic: no such thing" {
		t.Errorf("error %v, want that of the panic", err)
	}
	if d := cmp.Diff(upTo(10), calls.sorted()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestConflictsDoNotHideErrors(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "name", errors.New("changed"))
	for name, tc := range map[string]struct {
		errs         []error
		want         string
		wantConflict bool
	}{
		"nothing":                 {[]error{nil, nil}, "<nil>", false},
		"conflicts only":          {[]error{conflict, nil}, conflict.Error(), true},
		"a conflict and an error": {[]error{conflict, errors.New("refused")}, "refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := FirstErrors(tc.errs...)
			if got := fmt.Sprint(err); got != tc.want || apierrors.IsConflict(err) != tc.wantConflict {
				t.Errorf("error %q, a conflict: %t; want %q and %t", got, apierrors.IsConflict(err), tc.want, tc.wantConflict)
			}
		})
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

// TestSlowStartEndsWithItsPass checks that no other call starts once what the pass was decided on holds no more, and that this is no error.
func TestSlowStartEndsWithItsPass(t *testing.T) {
	calls := 0
	ctx, end := While(t.Context(), func() bool { return calls < 3 })
	defer end()
	count := func(context.Context, int) error { calls++; return nil }
	if err := NewSlowStart(1).Do(ctx, owner, 10, count); err != nil || calls != 3 {
		t.Errorf("%d calls with error %v, want 3", calls, err)
	}
	if !Ended(ctx) || !Superseded(ctx) || ctx.Err() == nil {
		t.Error("the pass goes on")
	}
	if Ended(t.Context()) || Superseded(t.Context()) {
		t.Error("what is no pass has ended")
	}
}
