// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// raw writes what no server of this version writes.
func (w *world) raw(key, data string) {
	w.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: w.transport.ServerList})
	if err != nil {
		w.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(w.Context(), prefix+"/archive-outbox/"+key, data); err != nil {
		w.Fatal(err)
	}
}

func TestAnEntryThatCannotBeReadBlocksNoOthers(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	aside := value(t, recordedTotal.WithLabelValues(resultSetAside))
	w.raw("damaged.1", "\x00")
	w.raw("newer.1", `{"version":2}`+"\n")
	s.create("a")
	s.mustRemove("a")
	s.drained()
	w.wantArchived(map[string]api.RunState{"a.1": api.RunDeleted})
	wantEqual(t, []string{"damaged.1", "newer.1"}, s.entries())
	wantEqual(t, 2, value(t, recordedTotal.WithLabelValues(resultSetAside))-aside)
}

func TestARunThatTheArchiveRefusesBlocksNoOthers(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	bad := archive.Key{Object: "uid-of-" + "set-0001", Execution: 1}
	w.archive.refused[bad] = true
	for i := range 3 {
		s.create(names(i))
		s.mustRemove(names(i))
	}
	d := s.newDrainer()
	round := func() {
		t.Helper()
		if err := d.once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	w.wantArchived(map[string]api.RunState{"set-0000.1": api.RunDeleted, "set-0002.1": api.RunDeleted})
	wantEqual(t, []string{"uid-of-set-0001.1"}, s.entries())

	delete(w.archive.refused, bad)
	round()
	wantEqual(t, []string{"uid-of-set-0001.1"}, s.entries()) // it is set aside
	w.clock.Step(maxBackoff)
	round()
	wantEqual(t, []string(nil), s.entries())
	if _, ok := w.archive.run("set-0001", 1); !ok {
		t.Error("the run is lost")
	}
}

// The archive is asked with one question while it is away, however much waits.
func TestTheDrainBacksOff(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	for i := range 3 {
		s.create(names(i), ends(api.RunCompleted))
		s.mustRemove(names(i))
	}
	w.archive.set(true)
	d := s.newDrainer()
	for range 3 {
		if err := d.once(t.Context()); err == nil {
			t.Fatal("the archive is away, but the drain has no error")
		}
	}
	if d.failed == nil {
		t.Error("the archive is not asked first")
	}
	wantEqual(t, 3, len(s.entries()))
	wantEqual(t, 0, oldest(t))

	// The archive comes back, and goes away again once it was asked.
	w.clock.Step(time.Hour)
	w.archive.set(false)
	s.at = func(at point) { w.archive.set(at == entryLoaded) }
	if err := d.once(t.Context()); err == nil {
		t.Fatal("the archive is away, but the drain has no error")
	}
	wantEqual(t, 3600, oldest(t))
	s.at = func(point) {}
	w.archive.set(false)
	if err := d.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, 0, oldest(t))
	wantEqual(t, 3, len(w.archive.states()))
}

// oldest returns the age that the metric has.
func oldest(t *testing.T) float64 {
	t.Helper()
	published, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range published {
		if metric.GetName() == "jobset_apiserver_archive_outbox_oldest_seconds" {
			return metric.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no metric of the age of the outbox")
	return 0
}

// An archive whose disk is full answers questions. Its runs wait, and it is not asked to take each of them again and again.
func TestAnArchiveThatTakesNothing(t *testing.T) {
	const sets = 30
	w := newWorld(t)
	s := w.server()
	want := map[string]api.RunState{}
	for i := range sets {
		s.create(names(i), ends(api.RunFailed))
		s.update(w.as(alice), names(i), func(set *jobset.JobSet) { set.Labels = map[string]string{"queued": "yes"} })
		w.archive.refused[archive.Key{Object: types.UID("uid-of-" + names(i)), Execution: 1}] = true
		want[names(i)+".1"] = api.RunFailed
	}
	refused := value(t, recordedTotal.WithLabelValues(resultRefused))
	count := func(want float64) {
		t.Helper()
		now := value(t, recordedTotal.WithLabelValues(resultRefused))
		wantEqual(t, want, now-refused)
		refused = now
	}

	// The worker goes on with the objects that were not tried, the sweep with its next batch.
	left, err := s.record(t.Context(), s.take(<-s.queue))
	if !errors.Is(err, errRefused) || len(left) != sets-maxRefused {
		t.Errorf("%d objects are left: %v", len(left), err)
	}
	count(maxRefused)
	if err := s.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	count(maxRefused)

	for i := range sets {
		s.mustRemove(names(i))
	}
	d := s.newDrainer()
	for range 2 {
		if err := d.once(t.Context()); !errors.Is(err, errRefused) {
			t.Errorf("draining: %v", err)
		}
	}
	count(2 * maxRefused)
	wantEqual(t, 2*maxRefused, len(d.aside))
	wantEqual(t, sets, len(s.entries()))

	clear(w.archive.refused)
	w.clock.Step(maxBackoff)
	if err := d.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantArchived(want)
	wantEqual(t, []string(nil), s.entries())
}

func TestTheBackoffIsBounded(t *testing.T) {
	backoff := newBackoff()
	var delays []time.Duration
	for range 10 {
		delays = append(delays, backoff.Step())
	}
	if low, high := slices.Min(delays), slices.Max(delays); low < time.Second || high > maxBackoff*12/10 || !(delays[9] >= maxBackoff) {
		t.Errorf("the delays are %v, want them from 1 s to 1 min", delays)
	}
}

func TestTwoServersDrainTheSameEntries(t *testing.T) {
	w := newWorld(t)
	one, other := w.server(), w.server()
	for i := range 250 {
		one.create(names(i), func(set *jobset.JobSet) { ends(api.RunFailed)(set) })
		one.mustRemove(names(i))
	}
	var running sync.WaitGroup
	for _, s := range []*server{one, other} {
		running.Go(func() {
			if err := s.newDrainer().once(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	wantEqual(t, 250, len(w.archive.states()))
	wantEqual(t, []string(nil), other.entries())
}
