// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// Servers that break a promise on purpose: what finds nothing in the real one must find them.

// early acknowledges writes before they are committed. After a fault, so many of them are not.
type early struct {
	storage.Interface
	losses   atomic.Int64
	revision atomic.Int64
}

// loses returns whether the fault takes the next write.
func (s *early) loses() bool { return s.losses.Add(-1) >= 0 }

func (s *early) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if s.loses() {
		return s.acknowledge(obj, out)
	}
	return s.passed(out, s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s *early) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	if !s.loses() {
		return s.passed(out, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
	}
	current := reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
	if err := s.Get(ctx, key, storage.GetOptions{IgnoreNotFound: ignoreNotFound}, current); err != nil {
		return err
	}
	if err := preconditions.Check(key, current); err != nil {
		return err
	}
	next, _, err := update(current, storage.ResponseMeta{})
	if err != nil {
		return err
	}
	return s.acknowledge(next, out)
}

// acknowledge answers as if the object had been stored.
func (s *early) acknowledge(obj, out runtime.Object) error {
	copyInto(out, obj)
	return s.Versioner().UpdateObject(out, uint64(s.revision.Add(1)))
}

// passed keeps the highest revision of what was stored.
func (s *early) passed(out runtime.Object, err error) error {
	if err != nil {
		return err
	}
	version, err := s.Versioner().ObjectResourceVersion(out)
	for known := s.revision.Load(); int64(version) > known && !s.revision.CompareAndSwap(known, int64(version)); {
		known = s.revision.Load()
	}
	return err
}

// stale answers gets from a copy that lags behind.
type stale struct {
	storage.Interface

	mu     sync.Mutex
	lag    time.Duration
	copies map[string][]lagging
}

func newStale(lag time.Duration) *stale { return &stale{lag: lag, copies: map[string][]lagging{}} }

// setLag changes how long the copy lags behind later writes.
func (s *stale) setLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
}

// lagging is a version of an object and when the copy gets it. The object is nil after a deletion.
type lagging struct {
	at     time.Time
	object runtime.Object
}

func (s *stale) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.replicate(key, out, s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s *stale) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return s.replicate(key, out, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
}

func (s *stale) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	return s.replicate(key, nil, err)
}

func (s *stale) replicate(key string, obj runtime.Object, err error) error {
	if err != nil {
		return err
	}
	if obj != nil {
		obj = obj.DeepCopyObject()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies[key] = append(s.copies[key], lagging{time.Now().Add(s.lag), obj})
	return nil
}

func (s *stale) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.copies[key]) - 1; i >= 0; i-- {
		switch replica := s.copies[key][i]; {
		case time.Now().Before(replica.at):
		case replica.object == nil:
			return storage.NewKeyNotFoundError(key, 0)
		default:
			copyInto(out, replica.object)
			return nil
		}
	}
	return s.Interface.Get(ctx, key, opts, out)
}

// gapped does not show some changes to watchers.
type gapped struct {
	storage.Interface
	// every is how many changes it counts until it leaves one out.
	every  int64
	events atomic.Int64
}

func (s *gapped) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	events, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		return event, event.Type != watch.Modified || s.events.Add(1)%s.every != 0
	}), nil
}

func copyInto(out, obj runtime.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
}

// TestBrokenServersAreCaught has one client ask for what shows the fault.
func TestBrokenServersAreCaught(t *testing.T) {
	several, one, old, silent := &early{}, &early{}, newStale(0), &gapped{every: 1}
	begin := []Operation{{Kind: Create, Object: "a"}, {Kind: Update, Object: "a"}, {Kind: Get, Object: "a"}}
	cases := map[string]struct {
		wrap          func(storage.Interface) storage.Interface
		fault         func()
		before, after []Operation
		want          Rule
	}{
		"acknowledges before it commits": {
			wrap:   func(next storage.Interface) storage.Interface { several.Interface = next; return several },
			fault:  func() { several.losses.Store(2) },
			before: begin,
			after:  []Operation{{Kind: Create, Object: "b"}, {Kind: Update, Object: "a"}, {Kind: Get, Object: "b"}},
			want:   NotLinearizable,
		},
		"loses one acknowledged write": {
			wrap:   func(next storage.Interface) storage.Interface { one.Interface = next; return one },
			fault:  func() { one.losses.Store(1) },
			before: begin,
			after:  []Operation{{Kind: UpdateStatus, Object: "a"}, {Kind: Get, Object: "a"}},
			want:   NotLinearizable,
		},
		"stale gets": {
			wrap:   func(next storage.Interface) storage.Interface { old.Interface = next; return old },
			fault:  func() { old.setLag(time.Hour) },
			before: begin,
			after:  []Operation{{Kind: Update, Object: "a"}, {Kind: Get, Object: "a"}},
			want:   NotLinearizable,
		},
		"watches with gaps": {
			wrap:  func(next storage.Interface) storage.Interface { silent.Interface = next; return silent },
			fault: func() {}, before: begin[:1], after: begin[1:], want: WatchSkipped,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := script(t, serve(t, tc.wrap), tc.before, tc.fault, tc.after)
			report := Check(h, checkLimit)
			t.Log(report)
			if report.Counts[tc.want] == 0 {
				t.Errorf("the server was not caught: no %v", tc.want)
			}
		})
	}
}

// TestScriptOfServer shows that it is the faults of broken servers that are caught, and not the requests.
func TestScriptOfServer(t *testing.T) {
	before := []Operation{{Kind: Create, Object: "a"}, {Kind: Update, Object: "a"}, {Kind: Get, Object: "a"}}
	after := append([]Operation{{Kind: Create, Object: "b"}, {Kind: UpdateStatus, Object: "a"}, {Kind: Get, Object: "b"}}, before[1:]...)
	if report := Check(script(t, serve(t, nil), before, func() {}, after), checkLimit); !report.OK() {
		t.Error(report)
	}
}

// attempts is in how many histories a broken server is looked for.
const attempts = 5

func TestBrokenServersAreCaughtByChance(t *testing.T) {
	tier.OnRequest(t, "only chance lets a client see what the server breaks")
	several, one := &early{}, &early{}
	cases := map[string]struct {
		wrap  func(storage.Interface) storage.Interface
		fault func()
		want  []Rule
	}{
		"acknowledges before it commits": {
			wrap:  func(next storage.Interface) storage.Interface { several.Interface = next; return several },
			fault: func() { several.losses.Store(20) },
			want:  []Rule{NotLinearizable},
		},
		"loses one acknowledged write": {
			wrap:  func(next storage.Interface) storage.Interface { one.Interface = next; return one },
			fault: func() { one.losses.Store(1) },
			want:  []Rule{NotLinearizable},
		},
		"stale gets": {
			wrap: func(next storage.Interface) storage.Interface {
				s := newStale(100 * time.Millisecond)
				s.Interface = next
				return s
			},
			fault: func() {},
			want:  []Rule{NotLinearizable},
		},
		"watches with gaps": {
			wrap:  func(next storage.Interface) storage.Interface { return &gapped{Interface: next, every: 20} },
			fault: func() {},
			want:  []Rule{WatchSkipped},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// What a server has broken may stay unseen: it is possible that no client reads a write before the next one.
			missing := tc.want
			for range attempts {
				h := record(t, serve(t, tc.wrap), tc.fault)
				enough(t, h)
				report := Check(h, checkLimit)
				t.Log(report)
				missing = slices.DeleteFunc(slices.Clone(missing), func(rule Rule) bool { return report.Counts[rule] > 0 })
				if len(missing) == 0 {
					return
				}
			}
			t.Errorf("the server was not caught: no %v", missing)
		})
	}
}
