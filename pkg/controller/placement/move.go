// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"time"
)

// WhenFull is what happens to a set for which there is no room.
type WhenFull string

const (
	// WhenFullAffinity creates the Jobs with affinity and anti-affinity among pods, so that the scheduler finds a domain once there is one. It
	// is right where an autoscaler adds nodes for pods that are pending.
	WhenFullAffinity WhenFull = "affinity"
	// WhenFullWait creates no Job before each has a domain.
	WhenFullWait WhenFull = "wait"
)

// Action is what to do about the outcome of a request.
type Action int

const (
	// Assign creates each Job with its domain as node selector.
	Assign Action = iota
	// Affinity creates the Jobs with affinity among pods and without a domain.
	Affinity
	// Wait creates no Job and asks again when nodes, pods or assignments have changed.
	Wait
)

func (a Action) String() string {
	return [...]string{"Assign", "Affinity", "Wait"}[a]
}

// action returns what to do. Only exclusivity makes a set wait: one for which domains merely lack room gets those that lack least.
func (w WhenFull) action(o Outcome) Action {
	switch {
	case o == Placed, o == LacksRoom && w == WhenFullWait:
		return Assign
	case w == WhenFullWait:
		return Wait
	}
	return Affinity
}

const (
	// DefaultMoveAfter is how long pods of a Job wait for a node in its domain: longer than most nodes take to start.
	DefaultMoveAfter = 5 * time.Minute
	// MinMoveAfter and MaxMoveAfter bound the time, which doubles with each move. Shorter than MinMoveAfter would be less
	// than schedulers take for preemption and for another try.
	MinMoveAfter = 30 * time.Second
	MaxMoveAfter = time.Hour
)

// Pending is a Job with a domain in which some of its pods get no node.
type Pending struct {
	// After is how long its pods wait before the Job moves for the first time; 0 is DefaultMoveAfter.
	After time.Duration
	// Since is since when the scheduler has found none for any of them. It is zero if none waits.
	Since time.Time
	// Nominated is whether a node is nominated for one of them: preemption is making room.
	Nominated bool
	// NodesGained is when the domain last got a node that the pods can use, or one of those became ready. It is zero if that never happened.
	NodesGained time.Time
	// Ready is whether all pods of the Job were ready at some time in this attempt.
	Ready bool
	// Moves is how often the Job was moved in this attempt, and Moved when the last time was.
	Moves int
	Moved time.Time
}

// Move is whether a Job may be placed again, away from its domain.
type Move struct {
	// Due is whether it may now. It moves only if there is another domain with room.
	Due bool
	// After is when to ask again, if nothing changes before. It is 0 if only a change can make it due.
	After time.Duration
	// Reason is why it moves, for an event.
	Reason string
}

// DecideMove decides whether a Job whose pods do not get nodes may go to another domain.
func DecideMove(p Pending, now time.Time) Move {
	if p.Since.IsZero() || p.Nominated || p.Ready {
		return Move{}
	}
	wait := cmp.Or(p.After, DefaultMoveAfter)
	for i := 0; i < p.Moves && wait < MaxMoveAfter; i++ {
		wait *= 2
	}
	wait = min(wait, MaxMoveAfter)
	from := latest(p.Since, p.NodesGained, p.Moved)
	if left := from.Add(wait).Sub(now); left > 0 {
		return Move{After: min(left, wait)}
	}
	return Move{Due: true, Reason: fmt.Sprintf("its pods got no node for %s", now.Sub(p.Since).Round(time.Second))}
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
