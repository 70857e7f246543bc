// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// atRest returns a world in which all groups are ready.
func atRest(t *testing.T, replicas, unavailable, surge, partition int32) *world {
	t.Helper()
	w := newWorld(t, rolling(replicas, unavailable, surge, partition)).stabilize()
	for range 3 { // a set with a surge and a partition begins with a surge group
		w.ready(w.all()...)
	}
	w.targets = nil
	return w
}

func (w *world) change(changes ...func(*leaderworkersetv1.LeaderWorkerSetSpec)) *world {
	w.t.Helper()
	w.spec(func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		for _, change := range changes {
			change(s)
		}
	})
	return w.stabilize()
}

func (w *world) wantTargets(want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, strings.Join(w.targets, " ")); diff != "" {
		w.t.Error(diff)
	}
	w.targets = nil
}

func (w *world) wantGroups(want string) {
	w.t.Helper()
	if got := w.groups(); got != want {
		w.t.Errorf("groups %s, want %s", got, want)
	}
}

// The worked traces of the rolling update, with a StatefulSet controller.
func TestRollingUpdateTraces(t *testing.T) {
	t.Run("A", func(t *testing.T) {
		w := atRest(t, 4, 1, 0, 0)
		w.change(w.image("2")).wantTargets("(4,4) (3,4)")
		w.wantGroups("o o o N-")
		w.ready(3).ready(2).ready(1).wantTargets("(2,4) (1,4) (0,4)")
		w.ready(0).wantGroups("N N N N")
		if !w.available() {
			t.Error("not available")
		}
	})
	t.Run("B", func(t *testing.T) {
		w := atRest(t, 4, 2, 2, 0)
		w.change(w.image("2")).wantTargets("(4,6) (2,6)")
		w.wantGroups("o o N- N- N- N-")
		w.ready(4, 5).wantTargets("(0,6)")
		w.ready(2, 3).wantTargets("(0,4)")
		w.wantGroups("N- N- N N")
	})
	t.Run("C", func(t *testing.T) {
		w := atRest(t, 4, 0, 1, 0)
		w.change(w.image("2")).wantTargets("(4,5)")
		w.ready(4).ready(3).ready(2).ready(1).wantTargets("(3,5) (2,5) (1,5) (0,5)")
		w.ready(0).wantTargets("(0,4)")
	})
	t.Run("D", func(t *testing.T) {
		w := atRest(t, 4, 1, 1, 0)
		w.change(w.image("2")).wantTargets("(4,5) (3,5)")
		w.ready(4).ready(3).ready(2).wantTargets("(2,5) (1,5) (0,5)")
		w.ready(1).wantTargets("(0,4)")
		w.ready(0).wantGroups("N N N N")
	})
	t.Run("E", func(t *testing.T) {
		w := atRest(t, 6, 1, 0, 4)
		if got := w.String(); got != "(4,6,6/6)" {
			t.Errorf("at rest %s", got)
		}
		w.change(w.image("2")).wantTargets("(6,6) (5,6)")
		w.ready(5).wantTargets("(4,6)")
		if w.ready(4); !w.available() {
			t.Error("not available although all groups from the partition up are updated")
		}
		w.change(w.partition(2)).wantTargets("(3,6)")
		w.ready(3).wantTargets("(2,6)")
		w.ready(2)
		w.change(w.partition(0)).ready(1).wantTargets("(1,6) (0,6)")
	})
	t.Run("F", func(t *testing.T) {
		w := atRest(t, 3, 1, 1, 2)
		if got := w.String(); got != "(2,3,3/3)" {
			t.Errorf("at rest %s", got)
		}
		w.change(w.image("2")).wantTargets("(3,4) (2,4)")
		if w.ready(2, 3); !w.available() {
			t.Error("not available")
		}
		w.wantGroups("o o N N")
		w.change(w.partition(0)).wantTargets("(0,4)")
		w.ready(1).wantTargets("(0,3)")
		w.ready(0).wantGroups("N N N")
	})
	t.Run("G", func(t *testing.T) {
		w := atRest(t, 4, 1, 0, 0)
		w.change(w.image("2"), w.replicas(6)).wantTargets("(4,6)")
		w.wantGroups("o o o o N- N-")
		w.ready(4, 5).ready(3).wantTargets("(3,6) (2,6)")
	})
	t.Run("H", func(t *testing.T) {
		w := atRest(t, 4, 2, 0, 0)
		w.pods[1].ready = false
		w.change(w.image("2")).wantTargets("(4,4) (3,4)")
		w.ready(3).wantTargets("(1,4)")
	})
	t.Run("I", func(t *testing.T) {
		w := atRest(t, 4, 1, 4, 0)
		w.change(w.image("2")).wantTargets("(4,7) (3,7)")
	})
	t.Run("J", func(t *testing.T) {
		w := atRest(t, 2, 1, 0, 0)
		w.pods[0].ready, w.pods[1].ready = false, false
		w.change(w.image("2")).wantTargets("(2,2) (1,2)")
		w.ready(1).wantTargets("(0,2)")
	})
	t.Run("K", func(t *testing.T) {
		w := atRest(t, 6, 1, 2, 0)
		w.change(w.image("2"), w.replicas(3)).wantTargets("(3,5) (2,5)")
		w.ready(2, 3, 4).ready(w.all()...).wantTargets("(0,4) (0,3)")
	})
	t.Run("more may be unavailable than there are", func(t *testing.T) {
		w := atRest(t, 4, 10, 0, 0)
		w.change(w.image("2")).wantTargets("(4,4) (0,4)")
		w.wantGroups("N- N- N- N-")
	})
}

// A surge group that goes in the same step makes up for none: without it, one of two groups would be left although none may be unavailable.
func TestStepBesideTheEndOfASurge(t *testing.T) {
	groups := []group{
		{index: 0, leader: &Pod{}, ready: true, updated: true}, {index: 1, leader: &Pod{}, ready: true}, {index: 2, leader: &Pod{}},
		{index: 3, leader: &Pod{}, ready: true, updated: true},
	}
	r := rollout{replicas: 2, surge: 2, lowest: 1, exists: true, partition: 2, count: 4, groups: groups}
	if got, want := r.decide(), (target{2, 3}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	r.count, r.groups[2].ready, r.groups[2].updated = 3, true, true
	if got, want := r.decide(), (target{1, 3}); got != want {
		t.Errorf("got %v, want %v once the other surge group is ready", got, want)
	}
}

func TestWantIsWhatMayExist(t *testing.T) {
	for name, c := range map[string]struct {
		r    rollout
		bad  int32
		want int32
	}{
		"more are bad than the surge":       {rollout{replicas: 4, unavailable: 1, surge: 2}, 3, 6},
		"all of the surge is needed":        {rollout{replicas: 4, unavailable: 0, surge: 2}, 2, 6},
		"some of it is":                     {rollout{replicas: 4, unavailable: 1, surge: 2}, 2, 5},
		"none of it is":                     {rollout{replicas: 4, unavailable: 2, surge: 2}, 2, 4},
		"none is bad":                       {rollout{replicas: 4, unavailable: 0, surge: 2}, 0, 4},
		"no surge":                          {rollout{replicas: 4, unavailable: 1}, 4, 4},
		"a surge that is more than is used": {rollout{replicas: 4, unavailable: 1, surge: 4}, 4, 7},
	} {
		if got := c.r.want(c.bad); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestNextReleasesFromTheTopDown(t *testing.T) {
	states := func(s string) (out []state) {
		for _, f := range strings.Fields(s) {
			out = append(out, state{ready: !strings.Contains(f, "-"), updated: strings.Contains(f, "N"), broken: strings.Contains(f, "!")})
		}
		return out
	}
	for name, c := range map[string]struct {
		groups          string
		partition, step int32
		want            int32
	}{
		"the first":                             {"o o o o", 4, 1, 3},
		"two at a time":                         {"o o o o", 4, 2, 2},
		"no step":                               {"o o o o", 4, 0, 4},
		"the one on top is not ready":           {"o o o N-", 3, 1, 3},
		"the one on top is ready":               {"o o o N", 3, 1, 2},
		"never up again":                        {"o o o o", 2, 1, 2},
		"one below is not ready":                {"o o- o o", 4, 2, 3},
		"one that is not ready is free":         {"o o- o N", 3, 2, 1},
		"one in the middle is updated":          {"o N o o", 4, 1, 3},
		"all old ones are not ready":            {"o- o- o- o-", 4, 1, 3},
		"more than there are":                   {"o o", 2, 9, 0},
		"a step below zero after a scale-down":  {"o o o o", 4, -2, 4},
		"all are done":                          {"N N", 1, 1, 0},
		"those not ready at the top go at once": {"o o o- o-", 4, 1, 3},
		"a broken one below is not waited for":  {"o o-! o o", 4, 1, 3},
		"one that is not broken is waited for":  {"o o- o o", 4, 1, 4},
		"two that are not ready are enough":     {"o- o o- o", 4, 2, 4},
		"nor does it matter where they are":     {"o- o- o", 3, 2, 3},
		"broken ones are not waited for":        {"o- o o-! o", 4, 2, 2},
		"a new one in the middle is free":       {"o- N o o", 4, 3, 1},
	} {
		r := rollout{partition: c.partition, count: int32(len(strings.Fields(c.groups)))}
		if got := r.next(states(c.groups), c.step); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Pods that were never ready do not hold up the update that repairs them.
func TestUpdateOfGroupsThatWereNeverReady(t *testing.T) {
	for name, how := range map[string]counting{"all are counted": countAll, "one at a time": countOne} {
		for _, surge := range []int32{0, 1} {
			w := newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
				rolling(2, 1-surge, surge, 0)(set)
				set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](1)
			}).stabilize()
			w.counting = how
			w.change(w.image("2"))
			for range 10 {
				for _, p := range w.pods {
					p.ready = p.key == revisionOf(w.observe()).key
				}
				w.stabilize()
			}
			if got := w.groups(); got != "N N" || !w.available() {
				t.Errorf("%s, surge %d: %s %s", name, surge, w, got)
			}
		}
	}
}

// A cluster without the feature MaxUnavailableStatefulSet drops the field and replaces one leader after the other; the
// controller replaces the rest.
func TestUpdateWhereStatefulSetsReplaceOneAtATime(t *testing.T) {
	w := newWorld(t, rolling(6, 3, 0, 0))
	w.counting = countOne
	w.stabilize().finish()
	if p := Decide(w.observe()); p.ApplyLeader != nil {
		t.Error("a StatefulSet that lacks what the API drops is applied again and again")
	}
	w.change(w.image("2"))
	w.stabilize()
	fresh := 0
	for _, p := range w.pods {
		fresh += int(one(p.key == revisionOf(w.observe()).key))
	}
	if fresh != 3 {
		t.Errorf("%d groups are replaced at a time, want 3: %s", fresh, w.groups())
	}
	w.finish()
	if !w.available() {
		t.Errorf("the update has not ended: %s", w.groups())
	}
}

// TestSurgeWhilePaused keeps the groups of a surge until all others are ready, and adds none.
func TestSurgeWhilePaused(t *testing.T) {
	groups := func(ready ...int32) (out []group) {
		for i := range int32(6) {
			out = append(out, group{index: i, leader: &Pod{}, ready: slices.Contains(ready, i), updated: i > 3})
		}
		return out
	}
	for name, c := range map[string]struct {
		r    rollout
		want target
	}{
		"a group is down":           {rollout{partition: 6, count: 6, groups: groups(0, 1, 3, 4, 5)}, target{6, 6}},
		"all are ready":             {rollout{partition: 6, count: 6, groups: groups(0, 1, 2, 3, 4, 5)}, target{6, 4}},
		"only a surge group is not": {rollout{partition: 6, count: 6, groups: groups(0, 1, 2, 3)}, target{6, 4}},
		"a group was released":      {rollout{partition: 3, count: 6, groups: groups(0, 1, 2, 3, 4, 5)}, target{3, 6}},
		"no surge yet":              {rollout{partition: 4, count: 4, groups: groups(0, 1, 2)[:4]}, target{4, 4}},
		"the spec changes":          {rollout{changed: true, count: 4, groups: groups(0, 1, 2)[:4]}, target{4, 4}},
		"a scale-up":                {rollout{partition: 2, count: 3, groups: groups(0, 1, 2)[:3]}, target{2, 4}},
		"a scale-up, none released": {rollout{partition: 3, count: 3, groups: groups(0, 1, 2)[:3]}, target{4, 4}},
		"at rest":                   {rollout{partition: 0, count: 4, groups: groups(0, 1, 2, 3)[:4]}, target{0, 4}},
	} {
		c.r.replicas, c.r.unavailable, c.r.surge, c.r.exists, c.r.paused = 4, 1, 2, true, true
		if got := c.r.decide(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
