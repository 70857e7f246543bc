// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue holds the names of objects to sync and runs workers that sync them, whatever kind they are of.
package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/logging"
)

const (
	// gathering is how long AddSoon waits for more reasons to sync an object that has just been synced. The children of a
	// large set change one by one, in bursts; without it each change would cost a sync and a write of the status.
	gathering = 100 * time.Millisecond
	// maxGathering is how much longer Gather makes them wait at most.
	maxGathering = 5 * time.Second
	// syncTimeout is how long a sync may begin requests. What is left then is up to the next sync.
	syncTimeout = time.Minute
	// longestPause is how long a queue waits at most before it looks again, however far away the deadline is. Deadlines
	// are times of day, and pauses are not: when the clock of the machine is set forward meanwhile, a deadline comes
	// sooner than was computed.
	longestPause = 10 * time.Minute
	// flushEvery is how often the queue looks at failures that are not repeated.
	flushEvery = time.Minute
)

// ErrPanic is in the error of what has panicked.
var ErrPanic = errors.New("panic")

// SyncFunc brings one object to where it should be, and returns when to look again. When the context ends, it begins nothing new and
// returns soon: see children.Finishing.
type SyncFunc func(ctx context.Context, key cache.ObjectName) (Due, error)

// Queue holds the names of objects to sync, each at most once, and runs workers that never sync the same object at the
// same time.
type Queue struct {
	name  string
	queue workqueue.TypedDelayingInterface[cache.ObjectName]
	order *order

	// failures are the failures of syncs, and of others that have to do with them.
	failures *logging.Repeats

	mu sync.Mutex
	// synced holds the objects that were synced lately, and those that are at present.
	synced map[cache.ObjectName]lately
	// hurry has, for how long at most reasons are gathered to sync an object, if something waits for one of those since the last sync that has
	// decided about it.
	hurry map[cache.ObjectName]time.Duration
	// paces holds the objects whose last sync has failed.
	paces map[cache.ObjectName]*Pace
}

// lately is the last sync of an object.
type lately struct {
	// at is when it ended; zero for one that goes on.
	at time.Time
	// more is for how long more reasons to sync the object are gathered.
	more time.Duration
}

// New returns a queue. Its metrics carry the name.
func New(name string) *Queue {
	RegisterMetrics()
	initMetrics(name)
	order := newOrder()
	waiting := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order})
	return &Queue{
		name:   name,
		queue:  workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Queue: waiting}),
		order:  order,
		synced: map[cache.ObjectName]lately{}, hurry: map[cache.ObjectName]time.Duration{}, paces: map[cache.ObjectName]*Pace{},
		failures: logging.NewRepeats(clock.RealClock{}),
	}
}

// Add asks for a sync of the object.
func (q *Queue) Add(key cache.ObjectName) { q.queue.Add(key) }

// AddSoon asks for a sync of the object for a reason that others of its kind are likely to follow: at once, unless the
// object has just been synced.
func (q *Queue) AddSoon(key cache.ObjectName) { q.AddWithin(key, gathering) }

// AddWithin is AddSoon for a reason that something waits for. An object that has just been synced is synced again after the given
// time, at most after that of AddSoon. Reasons that wait longer are served by the same sync. If that is undecided, because caches lag, the
// event that ends the lag is a reason which is as urgent. What Gather adds is added to both.
func (q *Queue) AddWithin(key cache.ObjectName, gather time.Duration) {
	q.queue.AddAfter(key, q.pause(key, q.hurried(key, min(gather, gathering))))
}

// hurried returns for how long reasons are gathered now that there is another one, and remembers it if it is less than usual.
func (q *Queue) hurried(key cache.ObjectName, gather time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before, found := q.hurry[key]; found {
		gather = min(gather, before)
	}
	if gather < gathering {
		q.hurry[key] = gather
	}
	return gather
}

// Gather makes AddSoon and AddWithin wait longer after the sync that has the context, or after the next one. It is for objects with so many
// children that each sync costs noticeable time: without it, the syncs of an object whose children change one by one would cost the
// square of their number. The time is bounded by maxGathering.
func Gather(ctx context.Context, more time.Duration) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		t.queue.mu.Lock()
		defer t.queue.mu.Unlock()
		t.queue.synced[t.key] = lately{more: min(more, maxGathering)}
	}
}

// pause returns the time until the object may be synced again for a reason that others are likely to follow.
func (q *Queue) pause(key cache.ObjectName, gather time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, found := q.synced[key]
	switch {
	case !found:
		return 0
	case last.at.IsZero():
		return gather + last.more
	}
	return gather + last.more - time.Since(last.at)
}

// begin and end note when an object is synced. Nothing is kept about objects beyond the time in which it matters. begin returns how to make
// the reasons urgent again that have asked for a sync which is undecided.
func (q *Queue) begin(key cache.ObjectName) (undecided func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.synced[key] = lately{more: q.synced[key].more}
	gather, found := q.hurry[key]
	delete(q.hurry, key)
	if !found {
		return func() {}
	}
	return func() { q.hurried(key, gather) }
}

func (q *Queue) end(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := lately{time.Now(), q.synced[key].more}
	q.synced[key] = last
	time.AfterFunc(gathering+last.more, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if now := q.synced[key]; now.at.Equal(last.at) {
			delete(q.synced, key)
		}
	})
}

// Len is the number of objects that wait for a worker.
func (q *Queue) Len() int { return q.queue.Len() }

// Failures remembers what fails, so that it is logged once and then counted.
func (q *Queue) Failures() *logging.Repeats { return q.failures }

// Run syncs until the context ends, and returns when the last sync has ended.
func (q *Queue) Run(ctx context.Context, workers int, syncOne SyncFunc) {
	maxWorkers.WithLabelValues(q.name).Set(float64(workers))
	q.order.setWorkers(workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for q.next(ctx, syncOne) {
			}
		})
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) { q.failures.Flush(klog.FromContext(ctx)) }, flushEvery)
	q.queue.ShutDown()
	running.Wait()
}

func (q *Queue) next(ctx context.Context, syncOne SyncFunc) bool {
	key, shutdown := q.queue.Get()
	if shutdown {
		return false
	}
	defer q.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	undecided := q.begin(key)
	defer q.end(key)
	logger := klog.FromContext(ctx).WithValues(q.name, key)
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), syncTimeout)
	defer cancel()
	ctx, turn := q.withTurn(ctx, cancel, key)
	defer func() { q.order.end(key, turn.ended.Load()) }()

	begin := time.Now()
	active := activeWorkers.WithLabelValues(q.name)
	active.Inc()
	var due Due
	err := Guarded(func() (err error) {
		due, err = syncOne(ctx, key)
		return err
	})
	active.Dec()
	if errors.Is(err, ErrPanic) {
		syncPanics.WithLabelValues(q.name).Inc()
	}
	if due.Undecided {
		undecided()
	}
	after, again := q.pace(key, due, err)
	observeSync(q.name, time.Since(begin), again, err)
	if again {
		q.queue.AddAfter(key, min(after, longestPause))
	}
	q.note(logger, key, turn, err)
	return true
}

// pace returns after which time the object is synced again, and whether it is.
func (q *Queue) pace(key cache.ObjectName, due Due, err error) (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pace := q.paces[key]
	if pace == nil {
		pace = &Pace{}
	}
	after, again := pace.Next(due, err != nil)
	if q.paces[key] = pace; *pace == (Pace{}) {
		delete(q.paces, key)
	}
	return after, again
}

// note logs what became of a sync, and syncs an object again whose turn has ended before all was done.
func (q *Queue) note(logger klog.Logger, key cache.ObjectName, turn *turn, err error) {
	switch {
	case err == nil:
		q.failures.Succeeded(logger, key.String())
		if turn.ended.Load() {
			q.queue.Add(key)
		}
	case apierrors.IsConflict(err):
		logger.V(4).Info("Acted on an outdated object, trying again", "reason", err)
	default:
		q.logFailure(logger, key, err)
	}
}

// logFailure logs the failure of a sync, which is going to be repeated. What a server decided is about the object; that one
// does not answer concerns all objects.
func (q *Queue) logFailure(logger klog.Logger, key cache.ObjectName, err error) {
	const message = "Sync failed, trying again"
	var panicked *panicError
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &panicked):
		q.failures.Failed(logger, key.String(), err, message, "stack", panicked.stack)
	case errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err):
		q.failures.Failed(logger, key.String(), err, message)
	default:
		q.failures.Failed(logger, logging.General, err, message)
	}
}

// panicError is what has panicked, and where.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanic, e.value) }

func (e *panicError) Unwrap() error { return ErrPanic }

// Guarded turns a panic into an error: one object that the code cannot handle must not stop all others.
func Guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{value: r, stack: string(debug.Stack())}
		}
	}()
	return do()
}
