// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// RuleRestarts is the rule of every kind about restarts of its controller.
const RuleRestarts = "a restart of the controller after any of its writes changes nothing of what comes of a history"

// Sweep is a fixed history that happens once without a restart of the controller, and once for each write of the controller with a restart
// after it.
type Sweep[M any] struct {
	// Run lets the history happen. It sets RestartAfter of its world before the first write, and returns what came of the history, the number
	// of writes, and the rule that was broken, if any.
	Run func(m M, restartAfter int, trace *[]string) (outcome []string, writes int, broken string)
	// Faultless is the real controller.
	Faultless M
	// Least is the number of writes that the history has at least.
	Least int
}

// Test runs the history with all restarts.
func (s Sweep[M]) Test(t *testing.T) {
	writes, got := s.sweep(s.Faultless)
	if got.Broken != "" {
		var trace []string
		_, _, again := s.Run(s.Faultless, int(got.Seed), &trace)
		t.Fatalf("with a restart after write %d: %s\nand again: %s\n%s", got.Seed, got.Broken, again, strings.Join(trace, "\n"))
	}
	if writes < s.Least || got.Done != writes {
		t.Errorf("%d restarts after %d writes, want at least %d", got.Done, writes, s.Least)
	}
	t.Logf("%d restarts", got.Done)
}

// ShowDefects makes sure that a restart can change what comes of the history: each controller with a defect breaks one of its rules, and none
// without a restart.
func (s Sweep[M]) ShowDefects(t *testing.T, defects map[string]Defect[M]) {
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			writes, got := s.sweep(defect.Mutant)
			if got.Seed == 0 || !defect.shows(got.Broken) {
				t.Errorf("%d restarts after %d writes broke %q, want %q", got.Done, writes, got.Broken, defect.Rules)
			}
			t.Logf("with a restart after write %d: %.300s", got.Seed, got.Broken)
		})
	}
}

// sweep runs the history with all restarts of a controller. The seed of the result is the number of a write.
func (s Sweep[M]) sweep(m M) (writes int, result Result) {
	want, writes, broken := s.Run(m, 0, nil)
	if broken != "" {
		return writes, Result{Broken: broken}
	}
	return writes, RunMany(1, writes, func(after uint64) (map[string]int, string) {
		got, _, broken := s.Run(m, int(after), nil)
		if broken == "" && !slices.Equal(got, want) {
			broken = fmt.Sprintf("rule %q: %s", RuleRestarts, difference(want, got))
		}
		return nil, broken
	})
}

// difference returns the lines that only one of two lists has.
func difference(want, got []string) string {
	var out []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "without a restart: "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "with one: "+line)
		}
	}
	return strings.Join(out, "; ")
}

// Creations returns how often each name of a store was created, in the order of the names, and whether its object is there.
func Creations[T Object](kind string, s *Store[T]) (lines []string) {
	uids := map[string][]string{}
	for _, object := range s.States() {
		if uid := string(object.GetUID()); !slices.Contains(uids[object.GetName()], uid) {
			uids[object.GetName()] = append(uids[object.GetName()], uid)
		}
	}
	for name, all := range uids {
		_, found := s.Get(name)
		lines = append(lines, fmt.Sprintf("%s %s was created %d times, and is there: %t", kind, name, len(all), found))
	}
	slices.Sort(lines)
	return lines
}
