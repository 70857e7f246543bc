// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a controller whose caches are filled on demand.
type fake struct {
	name            string
	filled, running atomic.Bool
	// lingers is how long it takes to end.
	lingers time.Duration
}

func (f *fake) Name() string          { return f.name }
func (f *fake) Start(context.Context) {}

func (f *fake) Unfilled() []string {
	if f.filled.Load() {
		return nil
	}
	return []string{f.name + "s"}
}

func (f *fake) Run(ctx context.Context) {
	f.running.Store(true)
	<-ctx.Done()
	time.Sleep(f.lingers)
	f.running.Store(false)
}

func TestAwaitWaitsForAllCaches(t *testing.T) {
	for name, tc := range map[string]struct {
		fills     map[string]time.Duration
		want      time.Duration
		wantError string
	}{
		"all are filled at once": {fills: map[string]time.Duration{"job": 0, "group": 0}},
		"one takes longer":       {fills: map[string]time.Duration{"job": 0, "group": 30 * time.Second}, want: 30 * time.Second},
		"one is never filled":    {fills: map[string]time.Duration{"job": 0}, want: cachesTimeout},
		"none is ever filled": {
			want: cachesTimeout, wantError: "waiting for caches for 2m0s: not filled are those of jobs; groups",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job, group := &fake{name: "job"}, &fake{name: "group"}
				for _, f := range []*fake{job, group} {
					switch after, fills := tc.fills[f.name]; {
					case fills && after == 0:
						f.filled.Store(true)
					case fills:
						time.AfterFunc(after, func() { f.filled.Store(true) })
					}
				}
				begin := time.Now()
				err := New(job, group).Await(t.Context())
				if took := time.Since(begin); took < tc.want || took > tc.want+cachesPoll {
					t.Errorf("waited %s, want %s", took, tc.want)
				}
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tc.wantError {
					t.Errorf("error %q, want %q", got, tc.wantError)
				}
			})
		})
	}
}

func TestAwaitEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(&fake{name: "job"}).Await(ctx); err != nil {
		t.Error(err)
	}
}

func TestRunBeginsEachControllerWhenItsCachesAreFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, group := &fake{name: "job", lingers: time.Second}, &fake{name: "group"}
		job.filled.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			New(job, group).Run(ctx)
			close(ended)
		}()
		time.Sleep(time.Minute)
		if !job.running.Load() || group.running.Load() {
			t.Errorf("job runs: %t, group runs: %t", job.running.Load(), group.running.Load())
		}
		group.filled.Store(true)
		time.Sleep(cachesPoll)
		synctest.Wait()
		if !group.running.Load() {
			t.Error("group does not run although its caches are filled")
		}
		cancel()
		<-ended
		if job.running.Load() || group.running.Load() {
			t.Error("a controller still runs")
		}
	})
}

func TestRunEndsWhileCachesAreNotFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		New(&fake{name: "job"}).Run(ctx)
	})
}
