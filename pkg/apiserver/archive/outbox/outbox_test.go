// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
)

var (
	start     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	resource  = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	encrypted = schema.GroupResource{Group: "example.com", Resource: "secrets"}
)

// fixture is an etcd with the outbox of a server.
type fixture struct {
	*testing.T
	transport storagebackend.TransportConfig
	client    *clientv3.Client
	clock     *testingclock.FakePassiveClock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	client := etcdtest.Start(t)
	return &fixture{T: t, transport: storagebackend.TransportConfig{ServerList: client.Endpoints()}, client: client,
		clock: testingclock.NewFakePassiveClock(start)}
}

func (f *fixture) open(change ...func(*Config)) *Outbox {
	f.Helper()
	config := Config{Transport: f.transport, Prefix: "/registry/test", Clock: f.clock}
	for _, c := range change {
		c(&config)
	}
	o, err := Open(config)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = o.Close() })
	return o
}

func entryOf(uid string, change ...func(*Entry)) Entry {
	e := Entry{Resource: resource, ObjectKey: "/widgets/ns/" + uid, Written: start, Run: &api.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-of-" + uid, Labels: map[string]string{"a": "b"}},
		Object:     api.RunObject{APIVersion: "example.com/v1", Kind: "Widget", Name: uid, UID: types.UID(uid), Execution: 1},
		State:      api.RunFailed, EndTime: metav1.NewMicroTime(start.Add(1500 * time.Microsecond)),
		Details: &api.RunDetails{Spec: runtime.RawExtension{Raw: []byte(`{"replicas":3}`)}},
	}}
	for _, c := range change {
		c(&e)
	}
	return e
}

func (f *fixture) put(o *Outbox, e Entry) {
	f.Helper()
	if err := o.Put(f.Context(), e); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) load(o *Outbox) []Stored {
	f.Helper()
	refs, err := o.Index(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	if len(refs) == 0 {
		return nil
	}
	stored, err := o.Load(f.Context(), refs)
	if err != nil {
		f.Fatal(err)
	}
	return stored
}

// entries returns all entries as they are read.
func (f *fixture) entries(o *Outbox) (entries []Entry) {
	f.Helper()
	for _, stored := range f.load(o) {
		entry, err := o.Decode(f.Context(), stored)
		if err != nil {
			f.Fatal(err)
		}
		entries = append(entries, *entry)
	}
	return entries
}

// count returns what is in etcd.
func (f *fixture) count() (usage Usage) {
	f.Helper()
	response, err := f.client.Get(f.Context(), "/registry/test/archive-outbox/", clientv3.WithPrefix())
	if err != nil {
		f.Fatal(err)
	}
	for _, kv := range response.Kvs {
		usage.Entries++
		usage.Bytes += int64(len(kv.Key) + len(kv.Value))
	}
	return usage
}

func wantEqual[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sameRuns compares times that JSON brought into the zone of the machine, and details as a whole.
var sameRuns = cmp.Options{
	cmp.Comparer(func(a, b metav1.MicroTime) bool { return a.Equal(&b) }),
	cmp.Comparer(func(a, b runtime.RawExtension) bool { return bytes.Equal(a.Raw, b.Raw) }),
}

func TestEntriesComeBackOldestFirst(t *testing.T) {
	f := newFixture(t)
	o := f.open()
	first, second := entryOf("z"), entryOf("a", func(e *Entry) { e.Removal = true })
	f.put(o, first)
	f.put(o, second)
	if diff := cmp.Diff([]Entry{first, second}, f.entries(f.open()), sameRuns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantEqual(t, "/registry/test/archive-outbox/z.1", f.load(o)[0].Key)
}

func TestAnEntryIsReplacedByANewerOne(t *testing.T) {
	f := newFixture(t)
	o := f.open()
	f.put(o, entryOf("a"))
	old := f.load(o)[0]
	newer := entryOf("a", func(e *Entry) { e.Run.Message = strings.Repeat("longer ", 100) })
	f.put(o, newer)
	wantEqual(t, f.count(), o.Usage())
	wantEqual(t, o.Usage(), Usage{gauge(t, entriesGauge), gauge(t, bytesGauge)})
	if diff := cmp.Diff([]Entry{newer}, f.entries(o), sameRuns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if removed, err := o.Remove(t.Context(), old); removed || err != nil {
		t.Errorf("the entry that was replaced: removed %t, %v", removed, err)
	}
	if removed, err := o.Remove(t.Context(), f.load(o)[0]); !removed || err != nil {
		t.Errorf("the entry: removed %t, %v", removed, err)
	}
	wantEqual(t, Usage{}, o.Usage())
	wantEqual(t, Usage{}, f.count())
}

func TestTheOutboxIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		bound func(*Config)
		want  int64
	}{
		"by the number of entries": {bound: func(c *Config) { c.MaxEntries = 3 }, want: 3},
		"by bytes":                 {bound: func(c *Config) { c.MaxBytes = 1000 }, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			o, other := f.open(tc.bound), f.open()
			var err error
			written := int64(0)
			for ; err == nil; written++ {
				err = o.Put(t.Context(), entryOf(fmt.Sprintf("uid-%d", written)))
			}
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			wantEqual(t, tc.want, f.count().Entries)
			wantEqual(t, f.count(), o.Usage())

			// Another server drains it. This one finds that out when it has no room, but not at each request.
			for _, stored := range f.load(o) {
				if _, err := other.Remove(t.Context(), stored); err != nil {
					t.Fatal(err)
				}
			}
			f.clock.SetTime(start.Add(countAgain - 1))
			if err := o.Put(t.Context(), entryOf("late")); !errors.Is(err, ErrFull) {
				t.Errorf("before the next count: %v", err)
			}
			f.clock.SetTime(start.Add(countAgain))
			f.put(o, entryOf("later"))
			wantEqual(t, f.count(), o.Usage())
		})
	}
}

func TestUsageIsCountedAtTheStart(t *testing.T) {
	f := newFixture(t)
	o := f.open()
	for i := range 2*countPage + 1 {
		f.put(o, entryOf(fmt.Sprintf("uid-%d", i)))
	}
	next := f.open()
	if err := next.Recount(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, f.count(), next.Usage())
	wantEqual(t, 2*countPage+1, int(next.Usage().Entries))
}

func gauge(t *testing.T, of metrics.GaugeMetric) int64 {
	t.Helper()
	got, err := testutil.GetGaugeMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return int64(got)
}
