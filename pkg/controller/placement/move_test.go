// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"
)

func TestDecideMove(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		pending Pending
		want    Move
	}{
		"no pod waits":                 {Pending{}, Move{}},
		"pods wait for a moment":       {Pending{Since: ago(time.Minute)}, Move{After: 4 * time.Minute}},
		"pods wait for long":           {Pending{Since: ago(5 * time.Minute)}, Move{Due: true, Reason: "its pods got no node for 5m0s"}},
		"a node is nominated":          {Pending{Since: ago(time.Hour), Nominated: true}, Move{}},
		"all pods were ready":          {Pending{Since: ago(time.Hour), Ready: true}, Move{}},
		"the domain gains nodes":       {Pending{Since: ago(time.Hour), NodesGained: ago(time.Minute)}, Move{After: 4 * time.Minute}},
		"it gained nodes long ago":     {Pending{Since: ago(time.Hour), NodesGained: ago(2 * time.Hour)}, Move{Due: true, Reason: "its pods got no node for 1h0m0s"}},
		"it moved before":              {Pending{Since: ago(6 * time.Minute), Moves: 1, Moved: ago(7 * time.Minute)}, Move{After: 4 * time.Minute}},
		"twice":                        {Pending{Since: ago(19 * time.Minute), Moves: 2}, Move{After: time.Minute}},
		"so often that the wait grows": {Pending{Since: ago(59 * time.Minute), Moves: 1 << 30}, Move{After: time.Minute}},
		"and no more than an hour":     {Pending{Since: ago(time.Hour), Moves: 1 << 30}, Move{Due: true, Reason: "its pods got no node for 1h0m0s"}},
		"it moved, pods wait since":    {Pending{Since: ago(time.Hour), Moves: 1, Moved: ago(time.Minute)}, Move{After: 9 * time.Minute}},
		"a clock that went back":       {Pending{Since: now.Add(time.Hour)}, Move{After: 5 * time.Minute}},
		"it waits for less":            {Pending{Since: ago(time.Minute), After: 30 * time.Second}, Move{Due: true, Reason: "its pods got no node for 1m0s"}},
		"it waits for more":            {Pending{Since: ago(5 * time.Minute), After: time.Hour}, Move{After: 55 * time.Minute}},
		"less, doubled":                {Pending{Since: ago(time.Minute), After: 45 * time.Second, Moves: 1}, Move{After: 30 * time.Second}},
		"no moves, oddly":              {Pending{Since: ago(time.Minute), Moves: -1}, Move{After: 4 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideMove(test.pending, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWhenFull(t *testing.T) {
	type pair struct {
		full    WhenFull
		outcome Outcome
	}
	for at, want := range map[pair]Action{
		{WhenFullAffinity, Placed}: Assign, {WhenFullAffinity, LacksRoom}: Affinity, {WhenFullAffinity, Taken}: Affinity,
		{WhenFullWait, Placed}: Assign, {WhenFullWait, LacksRoom}: Assign, {WhenFullWait, Taken}: Wait,
	} {
		if got := at.full.action(at.outcome); got != want {
			t.Errorf("%s, %s: got %s, want %s", at.full, at.outcome, got, want)
		}
	}
}
