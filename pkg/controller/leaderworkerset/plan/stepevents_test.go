// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
)

// TestStepsAreAboutTheirPods checks that the events of two steps differ in more than their notes: of events that do not, only the first
// one is kept, if the status of the set was not written between them.
func TestStepsAreAboutTheirPods(t *testing.T) {
	f := newFixture(t, 4, 1)
	seen := map[string]string{}
	for _, step := range []struct{ from, to rollout }{
		{rollout{exists: true, partition: 4, count: 4}, rollout{partition: 3, count: 4}},
		{rollout{exists: true, partition: 3, count: 4}, rollout{partition: 2, count: 4}},
		{rollout{exists: true, partition: 2, count: 4}, rollout{partition: 0, count: 4}},
		{rollout{exists: true, partition: 0, count: 6}, rollout{count: 5}},
		{rollout{exists: true, partition: 0, count: 5}, rollout{count: 4}},
	} {
		events := leaderEvents(f.Set.Name, "", step.from, target{step.to.partition, step.to.count})
		if len(events) != 1 {
			t.Fatalf("events %+v", events)
		}
		e := events[0]
		if earlier, found := seen[e.Reason+e.Action+e.Related]; found || e.Related == "" {
			t.Errorf("%q is about %q, as is %q", e.Note, e.Related, earlier)
		}
		seen[e.Reason+e.Action+e.Related] = e.Note
	}
}
