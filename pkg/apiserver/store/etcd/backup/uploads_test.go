// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

// away is a place that may fail.
type away struct {
	sync.Mutex
	names []string
	fails error
	tries int
}

func (a *away) List(context.Context) (kept []backup.Kept, err error) {
	a.Lock()
	defer a.Unlock()
	for _, name := range a.names {
		k, _ := backup.ParseName(name)
		kept = append(kept, k)
	}
	slices.SortFunc(kept, backup.Newest)
	return kept, nil
}

func (a *away) Upload(_ context.Context, path, name string) error {
	a.Lock()
	defer a.Unlock()
	a.tries++
	if _, err := os.Stat(path); err != nil || a.fails != nil {
		return errors.Join(err, a.fails)
	}
	a.names = append(a.names, name)
	return nil
}

func (a *away) Prune(_ context.Context, newest string, keep int) error {
	a.Lock()
	defer a.Unlock()
	a.names = slices.DeleteFunc(a.names, func(name string) bool { return keep == 1 && name != newest })
	return nil
}

func (a *away) look() (names []string, tries int) {
	a.Lock()
	defer a.Unlock()
	return slices.Clone(a.names), a.tries
}

// TestUploads: the newest backup gets there after outages and restarts, and only once.
func TestUploads(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	save := func(revision int64) string {
		name := backup.Name(now, revision)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		return name
	}
	there := &away{}
	opened := errors.New("no credentials yet")
	uploads := &backup.Uploads{Directory: backup.Directory{Path: dir, Keep: 3, Now: time.Now}, Keep: 1, Open: func(context.Context) (backup.Away, error) {
		return there, opened
	}}
	synctest.Test(t, func(t *testing.T) {
		failed := max(metric(t, "upload_failures_total"), 0)
		save(1)
		stop := run(t, backup.Schedule{Directory: uploads.Directory, Uploads: uploads})
		time.Sleep(6 * time.Minute)
		if got := metric(t, "upload_failures_total"); got != failed+2 {
			t.Errorf("%f failures before there are credentials, want %f", got, failed+2)
		}
		opened = nil
		there.fails = errors.New("outage")
		time.Sleep(10 * time.Minute)
		there.fails = nil
		second := save(2)
		time.Sleep(6 * time.Minute)
		if names, tries := there.look(); !slices.Equal(names, []string{second}) || tries != 3 {
			t.Errorf("after the outage: %v after %d tries, want %s", names, tries, second)
		}
		stop()
		third := save(3)
		stop = run(t, backup.Schedule{Directory: uploads.Directory, Uploads: uploads})
		synctest.Wait()
		if names, _ := there.look(); !slices.Equal(names, []string{third}) {
			t.Errorf("after a restart: %v, want %s", names, third)
		}
		if at := metric(t, "upload_last_success_timestamp_seconds"); at != float64(now.Add(-time.Hour).Unix()) {
			t.Errorf("the metric is %f", at)
		}
		stop()
		run(t, backup.Schedule{Directory: uploads.Directory, Uploads: uploads})
		synctest.Wait()
		if _, tries := there.look(); tries != 4 {
			t.Errorf("what is there is uploaded again: %d tries", tries)
		}
	})
}
