// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	archivestore "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// aged is a store of runs of which only the ends matter.
type aged struct {
	mu     sync.Mutex
	ends   []time.Time
	prunes []int
	closed bool
	err    error
}

func (a *aged) Put(context.Context, []archive.Run) error { return a.err }

func (a *aged) Missing(context.Context, []archivestore.Ended) ([]archivestore.Key, error) {
	return nil, a.err
}

func (a *aged) Get(context.Context, string, string) (*archive.Run, error) {
	return nil, archivestore.ErrNotFound
}

func (a *aged) List(context.Context, archivestore.Query) (*archivestore.Page, error) {
	return &archivestore.Page{}, a.err
}

func (a *aged) Delete(context.Context, string, string, types.UID) (*archive.Run, error) {
	return nil, archivestore.ErrNotFound
}

func (a *aged) Prune(_ context.Context, before time.Time, _ int64, batch int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	removed := 0
	for removed < batch && len(a.ends) > 0 && a.ends[0].Before(before) {
		a.ends = a.ends[1:]
		removed++
	}
	a.prunes = append(a.prunes, removed)
	return removed, a.err
}

func (a *aged) Usage(context.Context) (archivestore.Usage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return archivestore.Usage{Runs: int64(len(a.ends)), Bytes: 7}, a.err
}

func (a *aged) Close() error {
	a.closed = true
	return nil
}

// TestOpensInTheBackground checks that the database answers with an error until it can be opened, and that it is tried again.
func TestOpensInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, tries := &aged{}, 0
		d := New(func(context.Context) (archivestore.Store, error) {
			if tries++; tries < 4 {
				return nil, errors.New("connection refused")
			}
			return store, nil
		}, Limits{}, clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx)
		}()
		synctest.Wait()
		if _, err := d.List(ctx, archivestore.Query{}); !errors.Is(err, errNotOpen) {
			t.Errorf("a list before the database is open ends with %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := d.List(ctx, archivestore.Query{}); err != nil || tries != 4 {
			t.Errorf("after %d tries, a list ends with %v", tries, err)
		}
		cancel()
		<-done
		if err := d.Close(); err != nil || !store.closed {
			t.Errorf("closing: %v, closed %t", err, store.closed)
		}
		if _, err := d.List(t.Context(), archivestore.Query{}); !errors.Is(err, errNotOpen) {
			t.Errorf("a list after closing ends with %v", err)
		}
	})
}

// TestClosedWhileOpening checks that a store that is opened too late is closed.
func TestClosedWhileOpening(t *testing.T) {
	store := &aged{}
	var d *Database
	d = New(func(context.Context) (archivestore.Store, error) {
		return store, d.Close()
	}, Limits{}, clock.RealClock{})
	if err := d.tryOpen(t.Context()); !errors.Is(err, errNotOpen) || !store.closed {
		t.Errorf("opening ends with %v, the store is closed: %t", err, store.closed)
	}
}

// TestRetention checks that runs are removed in batches once they are too old, also while the server runs.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		store := &aged{}
		for i := range 1200 {
			store.ends = append(store.ends, now.Add(-48*time.Hour+time.Duration(i)*time.Millisecond))
		}
		store.ends = append(store.ends, now.Add(-24*time.Hour+5*time.Minute), now)
		d := New(func(context.Context) (archivestore.Store, error) { return store, nil }, Limits{Age: 24 * time.Hour}, clock.RealClock{})
		metrics := prometheus.NewRegistry()
		d.register(metrics.MustRegister)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		store.mu.Lock()
		if diff := cmp.Diff([]int{500, 500, 200}, store.prunes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		store.mu.Unlock()
		if got := gauges(t, metrics); got["jobset_apiserver_archive_runs"] != 2 || got["jobset_apiserver_archive_bytes"] != 7 ||
			got["jobset_apiserver_archive_open"] != 1 {
			t.Errorf("metrics are %v", got)
		}
		time.Sleep(2 * retainEvery)
		synctest.Wait()
		store.mu.Lock()
		if len(store.ends) != 1 {
			t.Errorf("%d runs are left, want 1", len(store.ends))
		}
		store.mu.Unlock()
		cancel()
		<-done
	})
}

func gauges(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, metric := range all {
		if !strings.HasPrefix(metric.GetName(), subsystem) {
			t.Errorf("metric %s does not begin with %s", metric.GetName(), subsystem)
		}
		values[metric.GetName()] = metric.GetMetric()[0].GetGauge().GetValue()
	}
	return values
}
