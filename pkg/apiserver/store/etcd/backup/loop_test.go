// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// metric returns a value of this process; -1 if there is none.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	metrics, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range metrics {
		if metric.GetName() == "jobset_apiserver_backup_"+name {
			return metric.GetMetric()[0].GetGauge().GetValue() + metric.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// eventually waits until a condition holds.
// run runs a schedule until the test ends or the returned function is called.
func run(t *testing.T, s backup.Schedule) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestSchedule(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.putWitness(t, "u", "v1")
	d := directory(t, 3)
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "incomplete"), []byte("of a killed process"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := func(n int) func() bool {
		return func() bool { kept, err := d.List(); return err == nil && len(kept) >= n }
	}
	schedule := backup.Schedule{Source: s.source, Directory: d, Interval: 50 * time.Millisecond}
	stop := run(t, schedule)
	poll.Until(t, "there are three backups", kept(3))
	stop()
	list, err := d.List()
	if err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
	if at := metric(t, "last_success_timestamp_seconds"); at < float64(list[0].Time.Add(-time.Minute).Unix()) {
		t.Errorf("the last success was at %f, want %v", at, list[0].Time)
	}
	if bytes := metric(t, "last_size_bytes"); bytes < 4096 {
		t.Errorf("the last size is %f", bytes)
	}

	// After a restart of the server, the next one is due an interval after the last.
	schedule.Directory.Now = func() time.Time { return list[0].Time.Add(time.Minute) }
	schedule.Interval = time.Hour
	stop = run(t, schedule)
	defer stop()
	poll.Until(t, "the metric has the time of the newest backup", func() bool {
		return metric(t, "last_success_timestamp_seconds") == float64(list[0].Time.Unix())
	})
	if again, err := d.List(); err != nil || len(again) != 3 || again[0] != list[0] {
		t.Errorf("a restart adds %v, %v", again, err)
	}
}

func TestScheduleGoesOnAfterFailures(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	d := directory(t, 3)
	if err := os.WriteFile(d.Path, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	schedule := backup.Schedule{Source: s.source, Directory: d, Interval: 50 * time.Millisecond}
	before := max(metric(t, "failures_total"), 0)
	stop := run(t, schedule)
	defer stop()
	poll.Until(t, "there are two failures", func() bool { return metric(t, "failures_total") >= before+2 })
	if err := os.Remove(d.Path); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "there is a backup", func() bool { kept, err := d.List(); return err == nil && len(kept) > 0 })
}

// TestRefusedStoreIsNotBackedUp: it would push out the backups of the right one.
func TestRefusedStoreIsNotBackedUp(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	d := directory(t, 1)
	var looks, serving atomic.Int64
	stop := run(t, backup.Schedule{Source: s.source, Directory: d, Interval: 10 * time.Millisecond, Serving: func() bool {
		looks.Add(1)
		return serving.Load() > 0
	}})
	defer stop()
	poll.Until(t, "there are several looks", func() bool { return looks.Load() > 5 })
	if kept, err := d.List(); err != nil || len(kept) > 0 {
		t.Errorf("backups of a refused store: %v, %v", kept, err)
	}
	serving.Store(1)
	poll.Until(t, "there is a backup", func() bool { kept, err := d.List(); return err == nil && len(kept) > 0 })
}

func TestBackupBeforeAnotherVersion(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	schedule := backup.Schedule{Source: s.source, Directory: directory(t, 2)}
	expect := func(when, version string, want int) {
		t.Helper()
		if err := schedule.BeforeVersion(t.Context(), version); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		kept, err := schedule.Directory.List()
		if err != nil || len(kept) != want {
			t.Errorf("%s: %v, %v, want %d backups", when, kept, err, want)
		}
	}
	expect("of an empty store", "v1", 0)
	s.putWitness(t, "u", "v1")
	expect("of the same version", "v1", 0)
	expect("of a newer version", "v2", 1)
	expect("of a newer version that starts again", "v2", 1)
	s.put(t, prefix+"/a", "x")
	expect("of a newer version, after a change", "v2", 2)

	blocked := schedule
	blocked.Directory.Path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked.Directory.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := blocked.BeforeVersion(t.Context(), "v3"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("without a directory: %v", err)
	}
	blocked.Directory.Path = ""
	if err := blocked.BeforeVersion(t.Context(), "v3"); err != nil {
		t.Errorf("without backups: %v", err)
	}
}
