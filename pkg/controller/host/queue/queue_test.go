// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// runQueue runs a queue until the function returns.
func runQueue(t *testing.T, name string, workers int, syncOne SyncFunc, during func(*Queue)) {
	t.Helper()
	q := New(name)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { q.Run(ctx, workers, syncOne) })
	during(q)
	cancel()
	running.Wait()
}

func TestQueueTriesAgainUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs.Reset()
		key := cache.NewObjectName("ns", "name")
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "name", errors.New("changed"))
		results := []any{errors.New("refused"), "panic", conflict, time.Millisecond, nil}
		done := make(chan struct{})
		calls := 0
		syncOne := func(_ context.Context, got cache.ObjectName) (Due, error) {
			if got != key {
				t.Errorf("synced %s, want %s", got, key)
			}
			result := results[calls]
			calls++
			switch r := result.(type) {
			case error:
				return Due{}, r
			case string:
				panic(r)
			case time.Duration:
				return After(r), nil
			}
			close(done)
			return Due{}, nil
		}
		runQueue(t, "again", 1, syncOne, func(q *Queue) {
			q.Add(key)
			<-done
		})
		if d := cmp.Diff(len(results), calls); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
		for result, want := range map[string]float64{"error": 3, "requeue_after": 1, "success": 1} {
			got, err := testutil.GetCounterMetricValue(syncs.WithLabelValues("again", result))
			if err != nil || got != want {
				t.Errorf("syncs with result %s: %v (%v), want %v", result, got, err, want)
			}
		}
	})
}

// At the end, the context of a running sync is canceled, and Run waits for the sync. No other sync begins.
func TestQueueFinishesWhatItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		syncs, canceled, ended := 0, false, false
		syncOne := func(ctx context.Context, _ cache.ObjectName) (Due, error) {
			syncs++
			<-ctx.Done()
			canceled = true
			<-release
			return Due{}, nil
		}
		q := New("finish")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			q.Run(ctx, 1, syncOne)
			ended = true
		}()
		q.Add(cache.NewObjectName("ns", "name"))
		synctest.Wait()
		q.Add(cache.NewObjectName("ns", "other"))
		cancel()
		// Returns when every goroutine has come as far as it can.
		synctest.Wait()
		if !canceled || ended {
			t.Errorf("the sync was canceled: %t, want true; the queue has ended: %t, want false before the sync ends", canceled, ended)
		}
		close(release)
		synctest.Wait()
		if !ended || syncs != 1 {
			t.Errorf("the queue has ended: %t, want true; %d syncs, want 1", ended, syncs)
		}
	})
}

func TestQueueSyncsOneObjectAtATime(t *testing.T) {
	key := cache.NewObjectName("ns", "name")
	var mu sync.Mutex
	running, calls := 0, 0
	done := make(chan struct{})
	var q *Queue
	syncOne := func(context.Context, cache.ObjectName) (Due, error) {
		mu.Lock()
		running++
		calls++
		if running > 1 {
			t.Error("the same object is synced twice at a time")
		}
		last := calls == 20
		mu.Unlock()
		q.Add(key) // while it is being synced
		mu.Lock()
		running--
		mu.Unlock()
		if last {
			close(done)
		}
		return Due{}, nil
	}
	q = New("one")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		q.Run(ctx, 8, syncOne)
		close(ended)
	}()
	q.Add(key)
	<-done
	cancel()
	<-ended
}

func TestQueueBatchesEventsAfterASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, other := cache.NewObjectName("ns", "name"), cache.NewObjectName("ns", "other")
		begun, release := make(chan cache.ObjectName), make(chan struct{})
		syncOne := func(_ context.Context, got cache.ObjectName) (Due, error) {
			begun <- got
			<-release
			return Due{}, nil
		}
		runQueue(t, "gather", 2, syncOne, func(q *Queue) {
			q.AddSoon(key)
			<-begun
			added := time.Now()
			for range 20 { // while the sync runs
				q.AddSoon(key)
			}
			release <- struct{}{}
			if pause := q.pause(other, gathering); pause != 0 {
				t.Errorf("an object that was not synced pauses for %v", pause)
			}
			<-begun
			if waited := time.Since(added); waited < gathering {
				t.Errorf("the next sync began after %v, want %v or more", waited, gathering)
			}
			q.Add(other) // other objects, and other reasons, do not wait
			if got := <-begun; got != other {
				t.Errorf("synced %s, want %s", got, other)
			}
			release <- struct{}{}
			release <- struct{}{}
			remembered := func() bool {
				q.mu.Lock()
				defer q.mu.Unlock()
				return len(q.synced) > 0
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if remembered() {
				t.Error("objects are never forgotten")
			}
		})
	})
}

// TestAddWithinWaitsLess gives reasons of both kinds for an object that has just been synced.
func TestAddWithinWaitsLess(t *testing.T) {
	key := cache.NewObjectName("ns", "name")
	for name, tc := range map[string]struct {
		add  func(q *Queue)
		want []time.Duration
	}{
		"soon":             {func(q *Queue) { q.AddSoon(key) }, []time.Duration{0, gathering}},
		"within less":      {func(q *Queue) { q.AddWithin(key, 20*time.Millisecond) }, []time.Duration{0, 20 * time.Millisecond}},
		"within more":      {func(q *Queue) { q.AddWithin(key, time.Hour) }, []time.Duration{0, gathering}},
		"soon, and within": {func(q *Queue) { q.AddSoon(key); q.AddWithin(key, 20*time.Millisecond); q.AddSoon(key) }, []time.Duration{0, 20 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				q, begin := New("within"), time.Now()
				var got []time.Duration
				var running sync.WaitGroup
				running.Go(func() {
					q.Run(ctx, 1, func(context.Context, cache.ObjectName) (Due, error) {
						got = append(got, time.Since(begin))
						return Due{}, nil
					})
				})
				q.Add(key)
				synctest.Wait()
				tc.add(q)
				time.Sleep(time.Minute)
				cancel()
				running.Wait()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("times of syncs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMetricsOfWorkers has names and labels that dashboards of upstream's controller know.
func TestMetricsOfWorkers(t *testing.T) {
	const name = "workers"
	syncs.Reset()
	busy, goOn := make(chan struct{}), make(chan struct{})
	values := func() map[string]float64 {
		metrics, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, metric := range metrics {
			for _, series := range metric.GetMetric() {
				labels := map[string]string{}
				for _, label := range series.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				if labels["controller"] == name && strings.HasPrefix(metric.GetName(), "controller_runtime_") && series.GetHistogram() == nil {
					got[strings.TrimSpace(metric.GetName()+" "+labels["result"])] = series.GetCounter().GetValue() + series.GetGauge().GetValue()
				}
			}
		}
		return got
	}
	want := map[string]float64{
		"controller_runtime_reconcile_total success": 0, "controller_runtime_reconcile_total error": 0, "controller_runtime_reconcile_total requeue_after": 0,
		"controller_runtime_reconcile_errors_total": 0, "controller_runtime_reconcile_panics_total": 0,
		"controller_runtime_max_concurrent_reconciles": 3, "controller_runtime_active_workers": 1,
	}
	runQueue(t, name, 3, func(context.Context, cache.ObjectName) (Due, error) {
		close(busy)
		<-goOn
		return Due{}, nil
	}, func(q *Queue) {
		q.Add(cache.NewObjectName("ns", "name"))
		<-busy
		diff(t, "while one worker is at work", want, values())
		close(goOn)
	})
	want["controller_runtime_active_workers"], want["controller_runtime_reconcile_total success"] = 0, 1
	diff(t, "afterwards", want, values())
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
