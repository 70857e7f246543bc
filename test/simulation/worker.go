// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// Rules of every kind about how often its controller acts when nothing happens.
const (
	// RulePasses and RuleRefusals bound what time alone brings about.
	RulePasses   = "an object to which nothing happens is synced at most 6 times a minute, unless something is written"
	RuleRefusals = "once backed off, an object causes at most 2 refused requests a minute"
)

const (
	passesPerMinute, refusalsPerMinute = 6, 2
	// backedOff is how many syncs in a row must have failed, and refusalsOver the time over which refused requests are
	// counted, since a deadline may come before the end of a backoff of two minutes.
	backedOff    = 12
	refusalsOver = 4 * time.Minute
)

// Worker is the queue of a simulated controller and its only worker. When an object is synced again is decided by package queue.
type Worker struct {
	// World is the world of the controller, and Sender sends its requests.
	World  *World
	Sender *Sender
	// Careless makes it one that does not try again what failed, which is a defect.
	Careless bool
	// Eager makes it one that tries again what failed as soon as anything is due, which is a defect.
	Eager bool
	// Generation returns the UID and the generation of an object as its syncs see it; nil if they never change.
	Generation func(name string) string
	// Acted returns the same for syncs that may read the object again, and act on what is stored instead of what a cache shows. It is called
	// after a sync, and nil for other syncs.
	Acted func(name string) string

	objects map[string]*queued
}

// queued is what is known of an object.
type queued struct {
	// ready means that the object waits for the worker, and due when it will.
	ready bool
	due   time.Time
	pace  queue.Pace
	// byTime means that nothing happened to the object since its last sync.
	byTime bool
	// overtaken means that due was set before a sync that an event brought about: the queue cannot take a time back. leftOver means that such
	// a time has come. The sync that it brings about is not counted: there is one at most after an event.
	overtaken, leftOver bool
	// failed is the number of syncs in a row that have failed. idle are the times of syncs that wrote nothing, and that no event caused, but
	// only time. refused are the times of refused requests.
	failed        int
	idle, refused []time.Time
	// undecided is the number of the last syncs in a row with failures that are no decision of a server. Their backoff begins with the first one.
	undecided int
	// denials are the requests for it that were denied.
	denials denials
}

func (w *Worker) of(name string) *queued {
	if w.objects == nil {
		w.objects = map[string]*queued{}
	}
	if w.objects[name] == nil {
		w.objects[name] = &queued{}
	}
	return w.objects[name]
}

// Add makes an object wait for the worker, since something has happened to it.
func (w *Worker) Add(name string) { q := w.of(name); q.ready, q.byTime = true, false }

// Forget makes the worker one that has just started. What it has found out of the pace of others is gone with its process.
func (w *Worker) Forget() { w.objects = nil }

// Due returns when the next object is due; zero if none is.
func (w *Worker) Due() (next time.Time) {
	for _, q := range w.objects {
		if !q.due.IsZero() && (next.IsZero() || q.due.Before(next)) {
			next = q.due
		}
	}
	return next
}

// Ready returns the objects that wait for the worker, in the order of their names.
func (w *Worker) Ready() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		q := w.objects[name]
		if !q.due.IsZero() && !w.World.now.Before(q.due) {
			q.due = time.Time{}
			if !q.ready {
				q.ready, q.byTime, q.leftOver = true, true, q.overtaken
			}
		}
		if q.ready {
			names = append(names, name)
		}
	}
	return names
}

// Sync lets the worker sync one of the objects that wait for it. It reports whether there was one.
func (w *Worker) Sync(sync func(name string) (queue.Due, error)) bool {
	names := w.Ready()
	if len(names) == 0 {
		return false
	}
	w.SyncObject(OneOf(w.World.Dice, names...), sync)
	return true
}

// SyncObject lets the worker sync an object.
func (w *Worker) SyncObject(name string, sync func(name string) (queue.Due, error)) {
	q := w.of(name)
	done := pass{byTime: q.byTime, leftOver: q.byTime && q.leftOver, accepted: w.Sender.Accepted, refused: w.Sender.Refused}
	q.ready, q.byTime = false, true
	w.World.Seen["syncs"]++
	generation := ask(w.Generation, name, "")
	due, err := sync(name)
	generation = ask(w.Acted, name, generation)
	done.failed, done.denied = w.ended(err), due.Denied
	done.accepted, done.refused = w.Sender.Accepted-done.accepted, w.Sender.Refused-done.refused
	done.refused -= w.checkDenied(name, q, generation, w.Sender.takeDenied())
	if !due.Undecided || done.failed { // else it has only found out that a cache lags
		w.check(name, q, done)
	}
	after, again := q.pace.Next(due, done.failed)
	if w.Eager && done.failed && due.Deadline > 0 {
		after = min(after, due.Deadline)
	}
	if at := w.World.now.Add(after); again && (q.due.IsZero() || at.Before(q.due)) {
		q.due, q.overtaken = at, false
		return
	}
	q.overtaken = q.overtaken || !done.byTime
}

// ask returns the answer about an object, or the given one if there is nothing to ask.
func ask(question func(name string) string, name, otherwise string) string {
	if question == nil {
		return otherwise
	}
	return question(name)
}

// ended notes how a sync has ended. It reports whether it has failed.
func (w *Worker) ended(err error) bool {
	failed := err != nil && !w.Careless
	switch {
	case w.Sender.Dead || w.Sender.Deposed:
		w.Sender.Dead = true
		w.World.Seen["kills of the controller"]++
	case failed:
		w.World.Note("  sync failed: %v", err)
		w.World.Seen["failed syncs"]++
	}
	return failed
}

// pass is a sync that has ended. byTime means that time alone has brought it about, and leftOver that the time was set before the last
// event. denied means that it has failed only because of requests that a server has decided against.
type pass struct {
	byTime, leftOver, failed, denied bool
	accepted, refused                int
}

// count counts failures in a row.
func (q *queued) count(done pass) {
	q.failed, q.undecided = q.failed+1, q.undecided+1
	if !done.failed {
		q.failed = 0
	}
	if !done.failed || done.denied {
		q.undecided = 0
	}
}

// check checks the rules about what time alone brings about.
func (w *Worker) check(name string, q *queued, done pass) {
	q.count(done)
	switch {
	case !done.byTime || done.accepted > 0:
		q.idle, q.refused = nil, nil
	case !done.failed && !done.leftOver:
		if q.idle = append(w.within(time.Minute, q.idle), w.World.now); len(q.idle) > passesPerMinute {
			w.World.Fail(RulePasses, "%s was synced %d times in %s", name, len(q.idle), w.World.Since(q.idle[0]))
		}
	case q.failed > backedOff && (done.denied || q.undecided > backedOff):
		q.refused = append(w.within(refusalsOver, q.refused), slices.Repeat([]time.Time{w.World.now}, done.refused)...)
		if n := len(q.refused); n > refusalsPerMinute*int(refusalsOver/time.Minute) {
			w.World.Fail(RuleRefusals, "%d requests for %s were refused in %s", n, name, w.World.Since(q.refused[0]))
		}
	}
}

// within returns those times that are not longer ago than that.
func (w *Worker) within(d time.Duration, times []time.Time) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return w.World.Since(t) >= d })
}
