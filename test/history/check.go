// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rule is a promise of the server.
type Rule string

// Rules that a history can break.
const (
	// NotLinearizable is an object whose answers fit into no order.
	NotLinearizable Rule = "not linearizable"
	// Undecided is an object that could not be checked in time.
	Undecided Rule = "undecided"
	// LostWrite is a write that was acknowledged and is gone at the end, although no client deleted the object.
	LostWrite Rule = "acknowledged write lost"
	// TimeLine is a resourceVersion that means different things.
	TimeLine Rule = "one resourceVersion, two contents"
	// Backwards is a resourceVersion that is lower than one that was known before.
	Backwards Rule = "resourceVersion goes back"
	// TornList is a list that does not show one revision.
	TornList Rule = "list of several revisions"
	// WatchOrder is an event that is repeated or comes too late.
	WatchOrder Rule = "watch events out of order"
	// WatchSkipped is a change that a watcher was not shown.
	WatchSkipped Rule = "watch skips an event"
	// WatchContent is an event of the wrong type or about another object than the one before.
	WatchContent Rule = "watch event does not follow"
	// WatchStuck is a watcher that was not shown the last change in time.
	WatchStuck Rule = "watch does not reach the end"
)

// maxTexts is how many violations of a rule a report describes.
const maxTexts = 5

// Report is the verdict on a history.
type Report struct {
	// Violations are descriptions of what broke a rule, at most a few for each.
	Violations map[Rule][]string
	// Counts are all violations by rule.
	Counts map[Rule]int
	// Took is the time of the check.
	Took time.Duration

	history *History
}

// Check returns what is wrong with a history. The limit bounds the time for each of its objects.
func Check(h *History, limit time.Duration) *Report {
	start := time.Now()
	c := &checker{History: h, report: &Report{Violations: map[Rule][]string{}, Counts: map[Rule]int{}, history: h}}
	c.collect()
	c.checkOrder()
	c.checkLists()
	for i := range h.Watchers {
		c.checkWatcher(i)
	}
	for _, i := range h.Unfinished {
		c.add(WatchStuck, "watcher %d", i)
	}
	c.checkLost()
	c.checkRegisters(limit)
	c.report.Took = time.Since(start)
	return c.report
}

// checker collects violations of a history.
type checker struct {
	*History
	report *Report
	// changes are all versions that are known, and versions are their numbers in order.
	changes  map[int64]change
	versions map[string][]int64
}

func (c *checker) add(rule Rule, format string, args ...any) {
	c.report.Counts[rule]++
	if len(c.report.Violations[rule]) < maxTexts {
		c.report.Violations[rule] = append(c.report.Violations[rule], fmt.Sprintf(format, args...))
	}
}

// OK returns whether no rule was broken and everything was decided.
func (r *Report) OK() bool { return len(r.Counts) == 0 }

// String is a line about what was done, one with the verdict, and the violations.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "history of seed %d: %s\n", r.history.Seed, r.history.Summary())
	verdict := "linearizable, nothing lost, lists of one revision, watches complete and in order"
	if !r.OK() {
		verdict = "VIOLATED"
	}
	fmt.Fprintf(&b, "verdict after %s: %s", r.Took.Round(time.Millisecond), verdict)
	for _, rule := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "\n%s: %d", rule, r.Counts[rule])
		for _, text := range r.Violations[rule] {
			fmt.Fprintf(&b, "\n    %s", text)
		}
	}
	return b.String()
}

// Summary counts what was done.
func (h *History) Summary() string {
	kinds, outcomes := map[Kind]int{}, map[Outcome]int{}
	for i := range h.Operations {
		kinds[h.Operations[i].Kind]++
		outcomes[h.Operations[i].Outcome]++
	}
	events, connections := 0, 0
	for i := range h.Watchers {
		events += len(h.Watchers[i].Events)
		connections += h.Watchers[i].Connections
	}
	return fmt.Sprintf("%d operations on %d objects in %s (%s; %s), %d events of %d watchers on %d connections",
		len(h.Operations), len(h.Objects()), h.Duration.Round(100*time.Millisecond), counts(kinds), counts(outcomes), events, len(h.Watchers), connections)
}

// Reasons counts the errors of operations with an unknown outcome.
func (h *History) Reasons() map[string]int {
	reasons := map[string]int{}
	for i := range h.Operations {
		if o := &h.Operations[i]; o.Outcome == Unknown {
			reasons[o.Reason]++
		}
	}
	return reasons
}

// Count returns how many operations of the kind had the outcome.
func (h *History) Count(kind Kind, outcome Outcome) int {
	n := 0
	for i := range h.Operations {
		if o := &h.Operations[i]; o.Kind == kind && o.Outcome == outcome {
			n++
		}
	}
	return n
}

func counts[K ~string](m map[K]int) string {
	parts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, m[key]))
	}
	return strings.Join(parts, ", ")
}
