// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Beginning is the time at which every history begins.
var Beginning = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// maxLag is how long a cache lags at most. After 30 s a controller acts on what it sees, by design.
const maxLag = 20 * time.Second

// World is what the histories of all kinds have: dice, a clock, what was seen, and requests under way. A kind embeds
// it, and adds its stores, its users and its rules.
type World struct {
	Dice Dice
	// Seen counts what happened, by its name.
	Seen map[string]int
	// Outcomes are how often of a thousand requests end otherwise than carried out.
	Outcomes [Outcomes]int
	// Interludes is the percentage of requests before which something else happens.
	Interludes int
	// Pause is shorter than which the time between two happenings is.
	Pause time.Duration
	// RestartAfter is the number of the write after which the controller is killed; 0 for none. Writes is how many there were.
	RestartAfter, Writes int

	now    time.Time
	shown  time.Time
	trace  *[]string
	uids   int
	late   []func()
	stores []deleter
}

// NewWorld returns a world at its beginning. The trace gets the steps; nil if no caller reads them.
func NewWorld(d Dice, trace *[]string) *World {
	return &World{Dice: d, Seen: map[string]int{}, Pause: 400 * time.Millisecond, now: Beginning, shown: Beginning, trace: trace}
}

// Now and Since make the world a clock: that of the controller.
func (w *World) Now() time.Time                  { return w.now }
func (w *World) Since(t time.Time) time.Duration { return w.now.Sub(t) }

// Pass lets time pass.
func (w *World) Pass(d time.Duration) { w.now = w.now.Add(d) }

// Stored is the present time as a server stores it whose clock is the clock of the controller.
func (w *World) Stored() metav1.Time { return (&Server{}).Stored(w) }

// Traced reports whether a caller reads the steps, so that only then they are described.
func (w *World) Traced() bool { return w.trace != nil }

// Note adds a step to the trace.
func (w *World) Note(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf("%8.3fs  ", w.now.Sub(Beginning).Seconds())+fmt.Sprintf(format, args...))
	}
}

// Fail ends the history, because it has broken the rule.
func (w *World) Fail(rule, format string, args ...any) {
	panic(Violation(fmt.Sprintf("rule %q: %s", rule, fmt.Sprintf(format, args...))))
}

// NewUID returns one that no object has had.
func (w *World) NewUID(kind string) types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("%s-%d", kind, w.uids))
}

// RandomTrouble draws how often something else happens before a request, and how often requests end otherwise than
// carried out. Every third history does without the latter.
func (w *World) RandomTrouble() {
	w.Interludes = OneOf(w.Dice, 0, 10, 30)
	w.RandomOutcomes(30)
}

// RandomOutcomes draws how often requests end otherwise than carried out: never in so many histories of a hundred.
func (w *World) RandomOutcomes(without int) {
	if w.Dice.Percent(without) {
		return
	}
	for i := range w.Outcomes {
		if Outcome(i) != CarriedOut && w.Dice.Percent(40) {
			w.Outcomes[i] = OneOf(w.Dice, 10, 50, 150)
		}
	}
}

// EndTrouble makes every request one that is carried out at once.
func (w *World) EndTrouble() { w.Outcomes, w.Interludes = [Outcomes]int{}, 0 }

// NewSender returns a controller that sends requests, of which the interlude is what may happen before each.
func (w *World) NewSender(interlude func()) *Sender {
	return &Sender{
		Draw: w.draw, DrawWrite: w.drawWrite,
		Interlude: func() {
			if w.Dice.Percent(w.Interludes) {
				interlude()
			}
		},
		Later: func(request func()) { w.late = append(w.late, request) },
	}
}

// drawWrite draws what becomes of a request that changes something.
func (w *World) drawWrite() Outcome {
	if w.Writes++; w.Writes == w.RestartAfter {
		w.Seen["restarts after a write"]++
		w.Note("  the controller is killed after the next request")
		return KilledAfter
	}
	return w.draw()
}

// draw draws what becomes of a request.
func (w *World) draw() Outcome {
	n := w.Dice.IntN(1000)
	for i, share := range w.Outcomes {
		if n -= share; n < 0 {
			w.Seen["requests in trouble"]++
			w.Note("  next request: %s", Outcome(i))
			return Outcome(i)
		}
	}
	return CarriedOut
}

// DeliverLate lets the first request arrive whose sender does not wait for it any more. It reports whether there was one.
func (w *World) DeliverLate() bool {
	if len(w.late) == 0 {
		return false
	}
	w.Note("a late request arrives")
	request := w.late[0]
	w.late = w.late[1:]
	request()
	return true
}

// DropLate drops the requests whose senders do not wait for them any more, as a server does when it ends.
func (w *World) DropLate() { w.late = nil }

// Underway is the number of requests whose sender does not wait for them any more.
func (w *World) Underway() int { return len(w.late) }

// PassTime lets some seconds pass.
func (w *World) PassTime() {
	w.Pass(OneOf(w.Dice, time.Second, 3*time.Second, 9*time.Second))
	w.Note("time passes")
}

// Happening is something that may happen in a world, as often as its weight says.
type Happening struct {
	Weight int
	Do     func()
}

// Happen lets one of them happen, a moment after what happened before. It reports whether any may.
func (w *World) Happen(all []Happening) bool {
	total := 0
	for _, h := range all {
		total += h.Weight
	}
	if total == 0 {
		return false
	}
	n := w.Dice.IntN(total)
	for _, h := range all {
		if n -= h.Weight; n < 0 {
			w.Pass(time.Duration(w.Dice.IntN(int(w.Pause/time.Millisecond))) * time.Millisecond)
			h.Do()
			break
		}
	}
	return true
}

// Cache is an informer of any type.
type Cache interface {
	Behind() int
	Advance()
	List()
}

// ShowSome lets one of the caches see some of what it has not seen.
func (w *World) ShowSome(caches []Cache) { w.ShowPart(OneOf(w.Dice, caches...)) }

// ShowPart lets a cache see some of what it has not seen.
func (w *World) ShowPart(c Cache) {
	if behind := c.Behind(); behind > 0 {
		for range 1 + w.Dice.IntN(behind) {
			c.Advance()
		}
	}
}

// ShowAll shows the caches everything. It reports whether there was anything to see.
func (w *World) ShowAll(caches []Cache) (news bool) {
	for _, c := range caches {
		for c.Behind() > 0 {
			news = true
			c.Advance()
		}
	}
	w.shown = w.now
	return news
}

// LimitLag shows the caches everything once they have lagged for too long.
func (w *World) LimitLag(caches []Cache) {
	for _, c := range caches {
		if c.Behind() > 0 {
			if w.Since(w.shown) > maxLag {
				w.ShowAll(caches)
			}
			return
		}
	}
	w.shown = w.now
}

// Stabilize runs rounds, in which everything has a turn, until no round does anything and nothing is due. It reports
// whether that came about. Nothing may fail any more, since what keeps failing never comes to rest.
func (w *World) Stabilize(maxRounds int, round func() (busy bool), due func() time.Time) bool {
	for range maxRounds {
		w.Pass(10 * time.Millisecond)
		if round() {
			continue
		}
		next := due()
		if next.IsZero() {
			return true
		}
		if next.After(w.now) {
			w.now = next
		}
	}
	return false
}

// Server is one API server of a world. The zero value has the clock of the controller and refuses nothing.
type Server struct {
	Versions
	// Ahead is how far its clock is ahead of that of the controller.
	Ahead time.Duration
	// Refusals are what it answers to requests of the controller, by verb and kind, such as "create pod".
	Refusals map[string]error
}

// Stored is the present time as the server stores it.
func (s *Server) Stored(w *World) metav1.Time {
	return metav1.NewTime(w.now.Add(s.Ahead).Truncate(time.Second))
}
