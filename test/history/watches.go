// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
)

// span is what a watcher saw without listing again: all changes after the start up to the end.
type span struct {
	start, end int64
	items      map[string]State
	events     []*Event
}

// spans cuts what a watcher received where it listed.
func (w *Watcher) spans() []span {
	var spans []span
	for i := range w.Events {
		event := &w.Events[i]
		if event.Type == Listed {
			spans = append(spans, span{start: event.State.Version, end: event.State.Version, items: event.Items})
			continue
		}
		if len(spans) == 0 {
			spans = append(spans, span{})
		}
		last := &spans[len(spans)-1]
		last.events = append(last.events, event)
		last.end = max(last.end, event.State.Version)
	}
	return spans
}

// checkWatcher checks each span of a watcher, and that it never listed a past state.
func (c *checker) checkWatcher(number int) {
	var end int64
	for _, s := range c.Watchers[number].spans() {
		if s.start < end {
			c.add(Backwards, "watcher %d lists version %d after version %d", number, s.start, end)
		}
		end = s.end
		c.checkEvents(number, &s)
		c.checkComplete(number, &s)
	}
}

// checkEvents wants versions that grow and events that follow from what the watcher knew.
func (c *checker) checkEvents(number int, s *span) {
	known := maps.Clone(s.items)
	if known == nil {
		known = map[string]State{}
	}
	last := s.start
	for _, event := range s.events {
		version := event.State.Version
		if version < last || version == last && event.Type != Bookmark {
			c.add(WatchOrder, "watcher %d received [%s] after version %d", number, event, last)
		}
		last = max(last, version)
		if event.Type == Bookmark {
			continue
		}
		before, exists := known[event.Object]
		if exists != (event.Type != Added) || exists && before.UID != event.State.UID {
			c.add(WatchContent, "watcher %d received [%s], but knew %s", number, event, describe(before, exists))
		}
		known[event.Object] = event.State
		if event.Type == Deleted {
			delete(known, event.Object)
		}
	}
}

func describe(s State, exists bool) string {
	if !exists {
		return "no such object"
	}
	return s.String()
}

// checkComplete wants all changes that anybody knows of.
func (c *checker) checkComplete(number int, s *span) {
	received := map[int64]bool{}
	for _, event := range s.events {
		if event.Type != Bookmark {
			received[event.State.Version] = true
		}
	}
	for _, version := range slices.Sorted(maps.Keys(c.changes)) {
		if s.start < version && version <= s.end && !received[version] {
			c.add(WatchSkipped, "watcher %d, which saw versions %d to %d, was not shown version %d: [%s]", number, s.start, s.end, version, c.source(version))
		}
	}
}
