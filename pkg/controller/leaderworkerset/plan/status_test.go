// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// conditionList returns the conditions in the order of the list.
func (w *world) conditionList() string {
	var out []string
	for _, c := range w.set.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s@%d", c.Type, c.Status, c.ObservedGeneration))
	}
	return strings.Join(out, " ")
}

func (w *world) wantConditions(want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.conditionList()); diff != "" {
		w.t.Error(diff)
	}
}

func TestConditionsFromCreationToUpdate(t *testing.T) {
	w := newWorld(t, rolling(2, 1, 0, 0)).stabilize()
	w.wantConditions("Progressing=True@1")
	w.ready(0)
	w.wantConditions("Progressing=True@1")
	w.ready(1)
	w.wantConditions("Progressing=False@1 Available=True@1")
	want := []metav1.Condition{
		{Type: "Progressing", Status: "False", Reason: "GroupsProgressing", Message: "Replicas are progressing", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(w.now)},
		{Type: "Available", Status: "True", Reason: "AllGroupsReady", Message: "All replicas are ready", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(w.now)},
	}
	if diff := cmp.Diff(want, w.set.Status.Conditions); diff != "" {
		t.Error(diff)
	}
	s := w.set.Status
	if s.HPAPodSelector != helper.HPAPodSelector("test-sample") || s.Replicas != 2 || s.ReadyReplicas != 2 || s.UpdatedReplicas != 2 || s.ObservedGeneration != 1 {
		t.Errorf("status %+v", s)
	}
	w.events = nil

	// An update begins in two writes: the second condition follows once the first is stored.
	w.now = w.now.Add(time.Minute)
	w.spec(w.image("2"))
	w.frozen = true
	w.step()
	w.wantConditions("Progressing=False@2 Available=False@2 UpdateInProgress=True@2")
	w.step()
	w.wantConditions("Progressing=True@2 Available=False@2 UpdateInProgress=True@2")
	if w.step(); w.stabilize().conditionList() != "Progressing=True@2 Available=False@2 UpdateInProgress=True@2" {
		t.Error(w.conditionList())
	}
	if c := w.set.Status.Conditions[2]; c.Reason != "GroupsUpdating" || c.Message != "Rolling Upgrade is in progress" || !c.LastTransitionTime.Time.Equal(w.now) {
		t.Errorf("condition %+v", c)
	}
	wantEvents := []string{
		"Normal|GroupsUpdating|Update|Rolling Upgrade is in progress, with 2 groups ready of total 2 groups",
		"Normal|CreatingRevision|Create|Creating revision with key " + key(w.leader) + " for updated LWS",
		"Normal|GroupsUpdating|Update|Rolling Upgrade is in progress, with 2 groups ready of total 2 groups",
		"Normal|GroupsUpdating|Update|Updating replica 1",
	}
	if diff := cmp.Diff(wantEvents, w.events); diff != "" {
		t.Error(diff)
	}
	w.become(1)
	w.become(0)
	w.wantConditions("Progressing=False@2 Available=True@2 UpdateInProgress=False@2")

	// Ready groups that fail, and a new generation without an update.
	w.pods[0].ready = false
	w.stabilize().wantConditions("Progressing=True@2 Available=False@2 UpdateInProgress=False@2")
	w.ready(0)
	w.now = w.now.Add(time.Minute)
	w.change(w.partition(0)).wantConditions("Progressing=False@3 Available=True@3 UpdateInProgress=False@3")
	if c := w.set.Status.Conditions[1]; !c.LastTransitionTime.Time.Equal(w.now) {
		t.Errorf("condition %+v of a new generation", c)
	}
}

func TestConditionsOfSpecialSets(t *testing.T) {
	w := newWorld(t, rolling(0, 1, 0, 0)).stabilize()
	w.wantConditions("Available=True@1")
	w = newWorld(t, rolling(2, 1, 0, 5)).stabilize()
	w.ready(0, 1)
	if w.change(w.image("2")); !w.available() || w.groups() != "o o" {
		t.Errorf("a partition above all groups: %s %s", w.conditionList(), w.groups())
	}
	w = atRest(t, 3, 1, 0, 0)
	w.pods[1].lacksWorkers = true
	w.stabilize()
	if s := w.set.Status; s.ReadyReplicas != 2 || s.UpdatedReplicas != 2 || w.available() {
		t.Errorf("a group without workers: %+v", s)
	}
}

// Kueue deletes the Workloads of the surge once as many replicas are updated as there are, so that those of the surge
// do not count in a queue.
func TestUpdatedReplicasInQueues(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*leaderworkersetv1.LeaderWorkerSet)
		want   []int32
	}{
		"no queue": {func(*leaderworkersetv1.LeaderWorkerSet) {}, []int32{2, 3, 2}},
		"a queue": {func(set *leaderworkersetv1.LeaderWorkerSet) {
			set.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
		}, []int32{1, 2, 2}},
		"marked by the webhook of Kueue": {func(set *leaderworkersetv1.LeaderWorkerSet) {
			set.Spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = map[string]string{"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset"}
		}, []int32{1, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) { rolling(2, 0, 1, 0)(set); tc.change(set) }).stabilize()
			w.ready(w.all()...)
			w.change(w.image("2"))
			var got []int32
			for _, index := range []int32{2, 1, 0} {
				w.ready(index)
				got = append(got, w.set.Status.UpdatedReplicas)
			}
			if !slices.Equal(got, tc.want) || !w.available() {
				t.Errorf("updated replicas %v, want %v; %s", got, tc.want, w.conditionList())
			}
		})
	}
}

// TestConditionsWithoutLeaderStatefulSet observes sets of which nothing exists yet.
func TestConditionsWithoutLeaderStatefulSet(t *testing.T) {
	for replicas, want := range map[int32]string{0: "", 2: "True"} {
		f := newFixture(t, replicas, 2)
		f.Leader, f.Leaders, f.Observed.Workers = nil, nil, nil
		f.pass()
		for kind, want := range map[string]string{"Progressing": want, "Available": "", "UpdateInProgress": ""} {
			if got, _ := f.condition(kind); string(got) != want {
				t.Errorf("%d replicas: %s=%q, want %q", replicas, kind, got, want)
			}
		}
	}
}

// A group keeps the size of its revision until it is replaced.
func TestGroupsOfFormerSizeStayReady(t *testing.T) {
	w := newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
		rolling(3, 1, 0, 0)(set)
		set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](1)
	}).stabilize().finish()
	w.change(func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.LeaderWorkerTemplate.GroupSize = ptr.To[int32](3) })
	if got := w.String(); got != "(2,3,2/1)" {
		t.Errorf("%s, want the groups of size 1 to be ready", got)
	}
	w.finish()
}

func TestEventsOfRollingUpdates(t *testing.T) {
	w := atRest(t, 4, 2, 2, 0)
	w.events = nil
	w.change(w.image("2"))
	w.ready(4, 5).ready(2, 3).ready(0, 1)
	var got []string
	for _, e := range w.events {
		if strings.Contains(e, "replica") && !strings.Contains(e, "groups ready") {
			got = append(got, e)
		}
	}
	want := []string{
		"Normal|GroupsUpdating|Update|Updating replicas 2 to 3 (inclusive)",
		"Normal|GroupsUpdating|Update|Updating replicas 0 to 1 (inclusive)",
		"Normal|GroupsProgressing|Delete|deleting surge replicas from test-sample-4 to test-sample-5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w = atRest(t, 2, 0, 1, 0)
	w.change(w.image("2"))
	w.events = nil
	if w.ready(2).ready(1).ready(0); !w.has("Normal|GroupsProgressing|Delete|deleting surge replica test-sample-2") {
		t.Errorf("events %q", w.events)
	}
}

func TestPausedSetReplacesNoGroup(t *testing.T) {
	paused := func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.Paused = ptr.To(true) }
	resume := func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.Paused = nil }
	t.Run("a new template does not begin", func(t *testing.T) {
		w := atRest(t, 4, 2, 2, 0)
		w.change(paused)
		w.change(w.image("2"))
		w.wantGroups("o o o o")
		if got := w.String(); got != "(4,4,4/0)" || w.conditions() != "Progressing UpdateInProgress" {
			t.Errorf("%s %s", got, w.conditions())
		}
		if want := "Normal|RolloutPaused|Update|The rolling update to revision " + key(w.leader) + " waits because spec.paused is true"; !w.has(want) {
			t.Errorf("events %q", w.events)
		}
		// The set can be scaled, with groups of the revision of the others.
		w.change(w.replicas(6)).ready(4, 5).wantGroups("o o o o o o")
		w.change(w.replicas(3)).wantGroups("o o o")
		w.change(w.image("3")).wantGroups("o o o")
		w.change(resume)
		w.finish().wantGroups("N N N")
	})
	t.Run("an update stops", func(t *testing.T) {
		w := atRest(t, 5, 1, 0, 0)
		w.change(w.image("2")).ready(4)
		w.wantGroups("o o o N- N")
		w.change(paused)
		w.ready(3).ready(3).wantGroups("o o o N N")
		if got := partitionOf(w.leader); got != 3 {
			t.Errorf("partition %d", got)
		}
		w.change(w.replicas(6)).ready(5).wantGroups("o o o N N N")
		w.change(w.image("3")).wantGroups("o o o o o o")
		w.change(resume)
		w.finish().wantGroups("N N N N N N")
	})
	t.Run("nothing to do", func(t *testing.T) {
		w := atRest(t, 3, 1, 0, 0)
		w.change(paused).wantTargets("")
		w.change(w.replicas(5)).wantTargets("(0,5)")
	})
	t.Run("a surge stays what it is", func(t *testing.T) {
		w := atRest(t, 4, 0, 1, 0)
		w.change(w.image("2"))
		w.change(paused).ready(4)
		w.wantGroups("o o o o N")
		w.change(w.image("3"))
		w.wantGroups("o o o o")
		w.change(resume)
		w.finish().wantGroups("N N N N")
	})
}

func TestFinishReportsWhatBecameOfWrites(t *testing.T) {
	o := newWorld(t, nil).observe()
	p := Plan{
		DeleteLeaders: []Deletion{{Ref: Ref{Name: "a"}, Event: &Event{Note: "deleted"}}, {Ref: Ref{Name: "b"}}},
		CreateWorkers: []NewWorkers{{Event: Event{Note: "first"}}, {Event: Event{Note: "second"}}},
		LeaderEvents:  []Event{{Note: "applied"}}, RequeueAfter: time.Minute,
	}
	notes := func(out Outcome) (notes []string) {
		for _, e := range out.Others {
			notes = append(notes, strings.TrimPrefix(strings.Join([]string{e.Type, e.Reason, e.Note}, "|"), "||"))
		}
		return notes
	}
	out := Finish(o, p, Results{LeaderApplied: true, DeletedLeaders: []int{0, 1}, CreatedWorkers: []int{1}})
	if diff := cmp.Diff([]string{"applied", "deleted", "second"}, notes(out)); diff != "" || out.RequeueAfter != time.Minute {
		t.Errorf("%s, after %s", diff, out.RequeueAfter)
	}
	out = Finish(o, p, Results{LeaderError: "no", ServiceError: "neither", WorkerErrors: map[string]string{"b": "2", "a": "1"}})
	if diff := cmp.Diff([]string{
		"Warning|FailedCreate|Failed to create leader statefulset test-sample: no", "Warning|FailedCreate|Failed to create headless service for error: neither",
		"Warning|FailedCreate|Failed to create worker statefulset for leader pod a: 1", "Warning|FailedCreate|Failed to create worker statefulset for leader pod b: 2",
	}, notes(out)); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(out.Others, func(e Event) bool { return e.Type == corev1.EventTypeWarning }) {
		t.Error("no warning")
	}
}
