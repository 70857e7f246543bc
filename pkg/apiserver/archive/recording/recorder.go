// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// maxQueued is how many objects that have ended wait to be recorded. Each takes some hundred bytes.
	maxQueued = 10_000
	// maxStored is for how many runs a server knows that they are stored, and maxDeleters for how many objects it knows who deletes them.
	maxStored   = 1 << 16
	maxDeleters = 1 << 13
	// outboxTimeout is how long a removal waits for the outbox.
	outboxTimeout = 3 * time.Second
	// storeTimeout bounds one question to the archive, and one page of the outbox.
	storeTimeout = 15 * time.Second
	// finishTimeout is how long a server that ends goes on to record what is queued.
	finishTimeout = 5 * time.Second
	// readyInterval is the time between two looks whether the server serves, and its watch caches are filled.
	readyInterval = time.Second
)

// Config is what a recorder needs.
type Config struct {
	// Store is the archive. It may fail at any time.
	Store archive.Store
	// Outbox keeps runs until the archive has them.
	Outbox *outbox.Outbox
	// Describe describes the runs of each resource. Other resources are not recorded.
	Describe map[schema.GroupResource]archive.Describe
	// New returns an empty object and an empty list of such a resource, of the types that its store has.
	New func(schema.GroupResource) (object, list runtime.Object)
	// Encoder encodes an object as JSON in the version in which runs show it.
	Encoder runtime.Encoder
	// Redact removes secrets from a run, and from the spec and the status of its object.
	Redact func(run *api.Run, spec, status map[string]any)
	// Serving returns whether the server serves its store. Until then nothing is read and nothing is recorded. nil means always.
	Serving func() bool
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Recorder records runs.
type Recorder struct {
	Config
	// queue has objects that have ended.
	queue chan ended
	// stored are runs that the archive has, with their ends, and deleters are who deletes objects that finalizers keep.
	stored   *bounded[archive.Key, time.Time]
	deleters *bounded[types.UID, string]
	// removed gets a value after a removal, so that the outbox is drained.
	removed chan struct{}
	fullLog limited

	mu     sync.Mutex
	stores map[schema.GroupResource]storage.Interface

	// at is called at named points in tests, and does nothing otherwise.
	at func(point)
}

// point is a point in the code at which a test ends a server.
type point string

const (
	beforeEntry  point = "before the entry is written"
	entryWritten point = "the entry is written"
	objectGone   point = "the object is removed"
	entryLoaded  point = "the entries are loaded"
	runStored    point = "the runs are stored"
	entryRemoved point = "an entry is removed"
)

// New returns a recorder. It records nothing before Run.
func New(config Config) *Recorder {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Serving == nil {
		config.Serving = func() bool { return true }
	}
	registerMetrics()
	return &Recorder{
		Config: config, queue: make(chan ended, maxQueued), stored: newBounded[archive.Key, time.Time](maxStored),
		deleters: newBounded[types.UID, string](maxDeleters), removed: make(chan struct{}, 1), fullLog: limited{clock: config.Clock},
		stores: map[schema.GroupResource]storage.Interface{}, at: func(point) {},
	}
}

// Run records until the context ends, and then what is queued already. It is called once, after all stores were wrapped.
func (r *Recorder) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.work(ctx) })
	running.Go(func() { r.drain(ctx) })
	running.Go(func() { r.sweepAlways(ctx) })
}

// awaitReady waits until the server serves and its watch caches are filled. It returns false if the context ends before.
func (r *Recorder) awaitReady(ctx context.Context) bool {
	for !r.ready() {
		if !r.wait(ctx, readyInterval, nil) {
			return false
		}
	}
	return ctx.Err() == nil
}

func (r *Recorder) ready() bool {
	if !r.Serving() {
		return false
	}
	for _, store := range r.wrapped() {
		if store.ReadinessCheck() != nil {
			return false
		}
	}
	return true
}

// wrapped returns the stores of all resources that are recorded.
func (r *Recorder) wrapped() map[schema.GroupResource]storage.Interface {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.stores)
}

// storeOf returns the store of a resource; nil if this server does not have it.
func (r *Recorder) storeOf(resource schema.GroupResource) storage.Interface {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stores[resource]
}
