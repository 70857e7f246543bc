// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// change is what a resourceVersion did to an object.
type change struct {
	object  string
	deleted bool
	state   State
	source  string
}

// collect puts all versions that answers and events name on one time line.
func (c *checker) collect() {
	c.changes = map[int64]change{}
	for i := range c.Operations {
		o := &c.Operations[i]
		if o.Outcome != Done {
			continue
		}
		if o.State.Version != 0 {
			c.note(change{object: o.Object, state: o.State}, o)
		}
		c.noteItems(o.Items, o)
	}
	for i := range c.Watchers {
		for j := range c.Watchers[i].Events {
			event := &c.Watchers[i].Events[j]
			if event.Object != "" {
				c.note(change{object: event.Object, state: event.State, deleted: event.Type == Deleted}, event)
			}
			c.noteItems(event.Items, event)
		}
	}
	c.versions = map[string][]int64{}
	for _, version := range slices.Sorted(maps.Keys(c.changes)) {
		object := c.changes[version].object
		c.versions[object] = append(c.versions[object], version)
	}
}

func (c *checker) noteItems(items map[string]State, source interface{ String() string }) {
	for object, state := range items {
		c.note(change{object: object, state: state}, source)
	}
}

// note adds a change to the time line. The content of a deletion is the last one of the object.
func (c *checker) note(next change, source interface{ String() string }) {
	version := next.state.Version
	known, ok := c.changes[version]
	if !ok {
		next.source = source.String()
		c.changes[version] = next
		return
	}
	if known.object != next.object || known.deleted != next.deleted || known.state != next.state {
		c.add(TimeLine, "version %d is of [%s] and of [%s]", version, known.source, source)
	}
}

// answer is a version and when it was known.
type answer struct {
	end     time.Duration
	version int64
	from    *Operation
}

// checkOrder wants versions that grow with time: who begins to write or list after an answer had arrived gets a later version.
func (c *checker) checkOrder() {
	answers, later := c.answers()
	highest := answer{}
	for _, o := range later {
		for len(answers) > 0 && answers[0].end < o.Start {
			if answers[0].version > highest.version {
				highest = answers[0]
			}
			answers = answers[1:]
		}
		if max(o.State.Version, listVersion(o)) < leastVersion(o, highest) {
			c.add(Backwards, "[%s] comes after [%s]", o, highest.from)
		}
	}
}

// leastVersion returns the least version of an answer after the highest that was known. A list may show what was known, but a write makes a
// new version.
func leastVersion(o *Operation, highest answer) int64 {
	if o.Kind == List {
		return highest.version
	}
	return highest.version + 1
}

// answers returns all versions in the order in which they were known, and what must have later ones in the order in which it began.
func (c *checker) answers() (answers []answer, later []*Operation) {
	for i := range c.Operations {
		o := &c.Operations[i]
		if o.Outcome != Done {
			continue
		}
		if version := max(o.State.Version, listVersion(o)); version > 0 {
			answers = append(answers, answer{o.End, version, o})
		}
		if o.Kind != Get && o.Kind != Delete {
			later = append(later, o)
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.end, b.end) })
	slices.SortFunc(later, func(a, b *Operation) int { return cmp.Compare(a.Start, b.Start) })
	return answers, later
}

func listVersion(o *Operation) int64 {
	if o.Kind == List {
		return o.Version
	}
	return 0
}

// checkLists wants every list to show each object as it was at the version of the list.
func (c *checker) checkLists() {
	for i := range c.Operations {
		if o := &c.Operations[i]; o.Kind == List && o.Outcome == Done {
			c.checkList(o.Items, o.Version, o)
		}
	}
	for i := range c.Watchers {
		for j := range c.Watchers[i].Events {
			if event := &c.Watchers[i].Events[j]; event.Type == Listed {
				c.checkList(event.Items, event.State.Version, event)
			}
		}
	}
}

func (c *checker) checkList(items map[string]State, at int64, source interface{ String() string }) {
	for object, versions := range c.versions {
		count, found := slices.BinarySearch(versions, at)
		if found {
			count++
		}
		item, listed := items[object]
		switch {
		case listed && item.Version > at:
			c.add(TornList, "%s has version %d in [%s]", object, item.Version, source)
		case count == 0:
		case listed && item.Version < versions[count-1]:
			c.add(TornList, "%s has version %d in [%s], but [%s] is of version %d", object, item.Version, source, c.source(versions[count-1]), versions[count-1])
		case !listed && !c.changes[versions[count-1]].deleted && c.mustKnow(versions[count-1], at):
			c.add(TornList, "%s is missing in [%s], but [%s] is of version %d", object, source, c.source(versions[count-1]), versions[count-1])
		}
	}
}

// source says who knows a version.
func (c *checker) source(version int64) string { return c.changes[version].source }

// mustKnow returns whether a watcher was shown all changes between the versions, deletions included.
func (c *checker) mustKnow(after, until int64) bool {
	for i := range c.Watchers {
		for _, s := range c.Watchers[i].spans() {
			if s.start <= after && until <= s.end {
				return true
			}
		}
	}
	return false
}

// checkLost wants the content of every acknowledged write, or a later one, in the list at the end, unless a client deleted the object.
func (c *checker) checkLost() {
	if c.Final == nil {
		return
	}
	deletions := c.deletions()
	for i := range c.Operations {
		o := &c.Operations[i]
		if !o.Kind.writes() || o.Kind == Delete || o.Outcome != Done {
			continue
		}
		item, listed := c.Final.Items[o.Object]
		deleted, ok := deletions[o.Object]
		if listed && item.Version < o.State.Version || !listed && (!ok || deleted < o.Start) {
			c.add(LostWrite, "[%s] is not in the list at the end: [%s]", o, c.Final)
		}
	}
}

// deletions returns until when each object may have been deleted.
func (c *checker) deletions() map[string]time.Duration {
	deletions := map[string]time.Duration{}
	for i := range c.Operations {
		o := &c.Operations[i]
		if o.Kind == Delete && o.Outcome == Unknown {
			deletions[o.Object] = c.Final.Start
		}
		if o.Kind == Delete && o.Outcome == Done {
			deletions[o.Object] = max(deletions[o.Object], o.End)
		}
	}
	return deletions
}
