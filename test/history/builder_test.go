// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// book is a history made by hand. Operations follow each other, each in one tick, unless they are said to last longer.
type book struct {
	History
	now time.Duration
}

func (b *book) add(o Operation) *book {
	if o.Object == "" && o.Kind != List {
		o.Object = "a"
	}
	if o.Outcome == "" {
		o.Outcome = Done
	}
	o.Start, o.End = b.now, b.now+1
	b.now += 2
	b.Operations = append(b.Operations, o)
	return b
}

// since lets the last operation begin earlier, by so many operations.
func (b *book) since(operations int) *book {
	last := &b.Operations[len(b.Operations)-1]
	last.Start -= time.Duration(2 * operations)
	return b
}

func state(version int64, uid types.UID, value, status string) State {
	return State{Version: version, UID: uid, Value: value, Status: status}
}

func (b *book) create(version int64, uid types.UID, value string) *book {
	return b.add(Operation{Kind: Create, Value: value, State: state(version, uid, value, "")})
}

func (b *book) update(from, to int64, value string) *book {
	return b.add(Operation{Kind: Update, Version: from, Value: value, State: state(to, "u", value, "")})
}

func (b *book) read(s State) *book { return b.add(Operation{Kind: Get, State: s}) }

func (b *book) absent() *book { return b.add(Operation{Kind: Get, Outcome: NotFound}) }

func (b *book) unknown(kind Kind, from int64, value string) *book {
	return b.add(Operation{Kind: kind, Version: from, Value: value, Outcome: Unknown})
}

func (b *book) list(at int64, items map[string]State) *book {
	return b.add(Operation{Kind: List, Version: at, Items: items})
}

// end makes the last operation the list at the end.
func (b *book) end() *book {
	b.Final = &b.Operations[len(b.Operations)-1]
	return b
}

// watch adds a watcher that received the events.
func (b *book) watch(events ...Event) *book {
	b.Watchers = append(b.Watchers, Watcher{Events: events})
	return b
}

func listed(at int64, items map[string]State) Event {
	return Event{Type: Listed, State: State{Version: at}, Items: items}
}

func event(t EventType, s State) Event { return Event{Type: t, Object: "a", State: s} }

func bookmark(at int64) Event { return Event{Type: Bookmark, State: State{Version: at}} }
