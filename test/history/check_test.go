// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// expect wants exactly these rules to be broken.
func expect(t *testing.T, b *book, want ...Rule) {
	t.Helper()
	report := Check(&b.History, time.Minute)
	got := slices.Sorted(maps.Keys(report.Counts))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); len(want)+len(got) > 0 && diff != "" {
		t.Errorf("broken rules (-want +got):\n%s\n%s", diff, report)
	}
}

func TestRegister(t *testing.T) {
	first, second := state(5, "u", "one", ""), state(7, "u", "two", "")
	begun := func() *book { return (&book{}).create(5, "u", "one") }
	cases := map[string]struct {
		book *book
		want []Rule
	}{
		"writes and reads one after the other": {book: begun().read(first).update(5, 7, "two").read(second).
			add(Operation{Kind: UpdateStatus, Version: 7, Value: "s", State: state(9, "u", "two", "s")}).
			add(Operation{Kind: Delete, UID: "u"}).absent().create(12, "v", "three")},
		"a read during a write sees the old content": {book: begun().update(5, 7, "two").read(first).since(1)},
		"a read during a write sees the new content": {book: begun().read(second).update(5, 7, "two").since(1)},
		"right refusals": {book: begun().add(Operation{Kind: Create, Outcome: Exists}).update(5, 7, "two").
			add(Operation{Kind: Update, Version: 5, Outcome: Conflict}).add(Operation{Kind: Delete, UID: "other", Outcome: Conflict}).
			add(Operation{Kind: Delete}).add(Operation{Kind: Delete, Outcome: NotFound}).add(Operation{Kind: Update, Version: 7, Outcome: NotFound})},

		"a read is older than an acknowledged write": {book: begun().update(5, 7, "two").read(first), want: []Rule{NotLinearizable}},
		"reads go back":                                      {book: begun().read(second).read(first).update(5, 7, "two").since(2), want: []Rule{NotLinearizable}},
		"an object is created twice":                         {book: begun().create(6, "v", "two"), want: []Rule{NotLinearizable}},
		"two updates of one version":                         {book: begun().update(5, 7, "two").update(5, 8, "three"), want: []Rule{NotLinearizable}},
		"the version does not grow":                          {book: begun().update(5, 4, "two"), want: []Rule{NotLinearizable, Backwards}},
		"a conflict with the current version":                {book: begun().add(Operation{Kind: Update, Version: 5, Outcome: Conflict}), want: []Rule{NotLinearizable}},
		"an object that exists is not found":                 {book: begun().absent(), want: []Rule{NotLinearizable}},
		"an object that exists is not found by a write":      {book: begun().add(Operation{Kind: Update, Version: 5, Outcome: NotFound}), want: []Rule{NotLinearizable}},
		"an object that nobody created already exists":       {book: (&book{}).add(Operation{Kind: Create, Outcome: Exists}), want: []Rule{NotLinearizable}},
		"an object of another UID is deleted":                {book: begun().add(Operation{Kind: Delete, UID: "other"}), want: []Rule{NotLinearizable}},
		"a deletion is refused although the UID is right":    {book: begun().add(Operation{Kind: Delete, UID: "u", Outcome: Conflict}), want: []Rule{NotLinearizable}},
		"a deletion without precondition meets a conflict":   {book: begun().add(Operation{Kind: Delete, Outcome: Conflict}), want: []Rule{NotLinearizable}},
		"a deleted object is back":                           {book: begun().add(Operation{Kind: Delete}).read(first), want: []Rule{NotLinearizable}},
		"a status write changes the value":                   {book: begun().add(Operation{Kind: UpdateStatus, Version: 5, Value: "s", State: state(7, "u", "x", "s")}), want: []Rule{NotLinearizable}},
		"a write of the value drops the status":              {book: begun().add(Operation{Kind: UpdateStatus, Version: 5, Value: "s", State: state(6, "u", "one", "s")}).update(6, 7, "two"), want: []Rule{NotLinearizable}},
		"an object has a value that nobody wrote":            {book: begun().read(state(6, "u", "strange", "")), want: []Rule{NotLinearizable}},
		"an object gets another UID":                         {book: begun().read(state(6, "v", "one", "")), want: []Rule{NotLinearizable}},
		"an answer has no resourceVersion that is a number":  {book: (&book{}).create(-1, "u", "one"), want: []Rule{NotLinearizable, Backwards}},
		"a list shows an old content":                        {book: begun().update(5, 7, "two").list(8, map[string]State{"a": first}), want: []Rule{NotLinearizable, TornList}},
		"a list misses an object":                            {book: begun().list(8, nil), want: []Rule{NotLinearizable}},
		"a list is older than an acknowledged write":         {book: begun().update(5, 7, "two").list(6, map[string]State{"a": first}), want: []Rule{NotLinearizable, Backwards}},
		"the last list lacks an acknowledged write":          {book: begun().update(5, 7, "two").list(8, map[string]State{"a": first}).end(), want: []Rule{NotLinearizable, TornList, LostWrite}},
		"the last list lacks an object that nobody deleted":  {book: begun().list(8, nil).end(), want: []Rule{NotLinearizable, LostWrite}},
		"the last list lacks an object that somebody delete": {book: begun().add(Operation{Kind: Delete}).list(8, nil).end()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, tc.book, tc.want...) })
	}
}

// Requests without an answer may have happened once, at any time, or never, but not twice, and not be undone.
func TestUnknownOutcomes(t *testing.T) {
	first, second := state(5, "u", "one", ""), state(7, "u", "two", "")
	begun := func() *book { return (&book{}).create(5, "u", "one") }
	cases := map[string]struct {
		book *book
		want []Rule
	}{
		"an update that happened":                        {book: begun().unknown(Update, 5, "two").read(second).read(second)},
		"an update that did not happen":                  {book: begun().unknown(Update, 5, "two").read(first).update(5, 6, "three")},
		"an update that happened later":                  {book: begun().unknown(Update, 5, "two").read(first).read(first).read(second)},
		"an update that happened meets a conflict":       {book: begun().unknown(Update, 5, "two").add(Operation{Kind: Update, Version: 5, Outcome: Conflict}).read(second)},
		"an update that only a conflict shows":           {book: begun().unknown(Update, 5, "two").add(Operation{Kind: Update, Version: 5, Outcome: Conflict}).add(Operation{Kind: Delete}).absent()},
		"a creation that happened":                       {book: (&book{}).unknown(Create, 0, "one").add(Operation{Kind: Create, Outcome: Exists}).read(first).update(5, 7, "two")},
		"a creation that did not happen":                 {book: (&book{}).unknown(Create, 0, "one").absent().create(5, "u", "other")},
		"a creation and a deletion that nobody saw":      {book: (&book{}).unknown(Create, 0, "one").add(Operation{Kind: Create, Outcome: Exists}).unknown(Delete, 0, "").absent()},
		"a deletion that happened":                       {book: begun().unknown(Delete, 0, "").absent()},
		"a deletion that happened later":                 {book: begun().unknown(Delete, 0, "").read(first).absent().create(8, "v", "two")},
		"a status that happened":                         {book: begun().unknown(UpdateStatus, 5, "s").read(state(6, "u", "one", "s"))},
		"a read without an answer":                       {book: begun().add(Operation{Kind: Get, Outcome: Unknown}).add(Operation{Kind: List, Outcome: Unknown}).read(first)},
		"an update that happened is undone":              {book: begun().unknown(Update, 5, "two").read(second).read(first), want: []Rule{NotLinearizable}},
		"an update from a version that has passed":       {book: begun().update(5, 6, "three").unknown(Update, 5, "two").read(second), want: []Rule{NotLinearizable}},
		"an update is seen before it is sent":            {book: begun().read(second).unknown(Update, 5, "two"), want: []Rule{NotLinearizable}},
		"a deletion happens twice":                       {book: begun().unknown(Delete, 0, "").absent().create(8, "v", "two").absent(), want: []Rule{NotLinearizable}},
		"a deletion of another UID happens":              {book: begun().add(Operation{Kind: Delete, UID: "other", Outcome: Unknown}).absent(), want: []Rule{NotLinearizable}},
		"a creation happens while the object exists":     {book: begun().unknown(Create, 0, "other").read(state(6, "v", "other", "")), want: []Rule{NotLinearizable}},
		"a lost write is excused by an unknown deletion": {book: begun().unknown(Delete, 0, "").list(8, nil).end()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, tc.book, tc.want...) })
	}
}

func TestTimeLine(t *testing.T) {
	other := func(version int64) Operation {
		return Operation{Kind: Create, Object: "b", Value: "b", State: state(version, "w", "b", "")}
	}
	first := state(5, "u", "one", "")
	begun := func() *book { return (&book{}).create(5, "u", "one") }
	cases := map[string]struct {
		book *book
		want []Rule
	}{
		"versions grow across objects":            {book: begun().add(other(6)).update(5, 7, "two")},
		"a later write has a lower version":       {book: begun().add(other(4)), want: []Rule{Backwards}},
		"a write at the same time has any":        {book: begun().add(other(4)).since(1)},
		"one version is of two objects":           {book: begun().add(other(5)).since(1), want: []Rule{TimeLine}},
		"one version has two contents":            {book: begun().list(6, map[string]State{"a": state(5, "u", "x", "")}), want: []Rule{TimeLine, NotLinearizable}},
		"lists go back":                           {book: begun().list(9, map[string]State{"a": first}).list(8, map[string]State{"a": first}), want: []Rule{Backwards}},
		"a list shows the future":                 {book: (&book{}).list(4, map[string]State{"a": first}).create(5, "u", "one").since(1), want: []Rule{TornList}},
		"a list shows two revisions":              {book: begun().add(other(6)).since(1).list(8, map[string]State{"b": state(6, "w", "b", "")}).since(2).watch(listed(1, nil), event(Added, first), Event{Type: Added, Object: "b", State: state(6, "w", "b", "")}, bookmark(9)), want: []Rule{TornList}},
		"a list before the deletion at its place": {book: begun().add(Operation{Kind: Delete}).list(8, nil).watch(listed(1, nil), event(Added, first), event(Deleted, state(8, "u", "one", "")))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, tc.book, tc.want...) })
	}
}

func TestWatches(t *testing.T) {
	first, second := state(5, "u", "one", ""), state(7, "u", "two", "")
	gone := state(9, "u", "two", "")
	begun := func() *book {
		return (&book{}).create(5, "u", "one").update(5, 7, "two").add(Operation{Kind: Delete, UID: "u"})
	}
	start, added, modified, deleted := listed(1, nil), event(Added, first), event(Modified, second), event(Deleted, gone)
	cases := map[string]struct {
		events []Event
		want   []Rule
	}{
		"complete and in order":                      {events: []Event{start, added, modified, deleted, bookmark(9), bookmark(12)}},
		"from the middle":                            {events: []Event{listed(6, map[string]State{"a": first}), modified, deleted}},
		"up to the middle":                           {events: []Event{start, added}},
		"a second list after the first is too old":   {events: []Event{start, added, listed(8, map[string]State{"a": second}), deleted}},
		"an event is skipped":                        {events: []Event{start, added, deleted}, want: []Rule{WatchSkipped}},
		"the first event is skipped":                 {events: []Event{start, modified, deleted}, want: []Rule{WatchSkipped, WatchContent}},
		"an event is skipped before a bookmark":      {events: []Event{start, added, bookmark(8)}, want: []Rule{WatchSkipped}},
		"a deletion is skipped that another saw":     {events: []Event{start, added, modified, bookmark(12)}, want: []Rule{WatchSkipped}},
		"an event is repeated":                       {events: []Event{start, added, modified, modified, deleted}, want: []Rule{WatchOrder}},
		"an event comes late":                        {events: []Event{start, modified, added, deleted}, want: []Rule{WatchOrder, WatchContent}},
		"an event comes after its bookmark":          {events: []Event{start, added, bookmark(7), modified, deleted}, want: []Rule{WatchOrder}},
		"a bookmark goes back":                       {events: []Event{start, added, modified, bookmark(6), deleted}, want: []Rule{WatchOrder}},
		"an object is added that was there":          {events: []Event{start, added, event(Added, second), deleted}, want: []Rule{WatchContent}},
		"an object is modified that was not there":   {events: []Event{start, event(Modified, first), modified, deleted}, want: []Rule{WatchContent}},
		"another object is deleted":                  {events: []Event{start, added, modified, event(Deleted, state(9, "v", "two", ""))}, want: []Rule{WatchContent, TimeLine}},
		"an event has another content":               {events: []Event{start, added, event(Modified, state(7, "u", "x", "")), deleted}, want: []Rule{TimeLine}},
		"a second list is older than the last event": {events: []Event{start, added, modified, listed(6, map[string]State{"a": first}), modified, deleted}, want: []Rule{Backwards}},
		"a list of several revisions":                {events: []Event{listed(8, map[string]State{"a": first}), deleted}, want: []Rule{TornList}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, begun().watch(start, added, modified, deleted).watch(tc.events...), tc.want...)
		})
	}
	t.Run("a watcher does not reach the end", func(t *testing.T) {
		b := begun()
		b.Unfinished = []int{0}
		expect(t, b, WatchStuck)
	})
}

// Many requests without an answer must not make a history that is all right take long.
func TestManyUnknownOutcomes(t *testing.T) {
	b := &book{}
	b.create(1, "u", "0")
	version := int64(1)
	for i := range 300 {
		b.unknown(Update, version, fmt.Sprint("lost-", i)).unknown(Create, 0, fmt.Sprint("never-", i))
		if i%10 == 0 {
			b.add(Operation{Kind: Delete, UID: "other", Outcome: Unknown})
		}
		if i%50 == 0 {
			b.unknown(Delete, 0, "").add(Operation{Kind: Delete, UID: "u", Outcome: Unknown})
		}
		b.update(version, version+2, fmt.Sprint(i))
		version += 2
	}
	b.unknown(Delete, 0, "").absent().add(Operation{Kind: Create, Outcome: Exists}).absent()
	expect(t, b)
}

// What cannot be decided in time is reported as such.
func TestUndecided(t *testing.T) {
	b := &book{}
	for i := range 40 {
		b.add(Operation{Kind: Delete}).since(2 * i)
		b.create(int64(i+1), types.UID(fmt.Sprint(i)), fmt.Sprint(i)).since(2*i + 1)
	}
	b.add(Operation{Kind: Get, State: state(50, "u", "nobody wrote this", "")})
	report := Check(&b.History, 50*time.Millisecond)
	if report.Counts[Undecided] != 1 || report.OK() {
		t.Errorf("got %s", report)
	}
}
