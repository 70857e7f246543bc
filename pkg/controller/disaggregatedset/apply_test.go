// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// short leaves of each write its verb, its resource and its name without the revision.
func short(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		words := strings.Fields(line)
		name := strings.Split(words[2], "-")
		if len(name) > 3 {
			name = slices.Delete(name, 2, 3)
		}
		out[i] = strings.Join([]string{words[0], words[1], strings.Join(name, "-")}, " ")
		if _, to, found := strings.Cut(line, `"path":"/spec/replicas","value":`); found {
			out[i] += " " + strings.TrimRight(to, "}]")
		}
	}
	return out
}

func TestSetComesToRest(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=1"))
	writes, err := r.pass(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create leaderworkersets llm-0-prefill", "create leaderworkersets llm-0-decode"}
	if diff := cmp.Diff(want, short(writes)); diff != "" {
		t.Errorf("first pass (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(r.set(t).Status.Conditions, "Progressing"); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("conditions %+v", r.set(t).Status.Conditions)
	}
	if writes, err := r.pass(t); err != nil || len(writes) > 0 {
		t.Errorf("while groups start: %v, writes %q", err, writes)
	}
	r.ready(t)
	want = []string{"create services llm-0-prefill-prv", "create services llm-0-decode-prv"}
	if got := short(r.stabilize(t)); !slices.Equal(want, got) {
		t.Errorf("once groups are ready: %q", got)
	}
	if !meta.IsStatusConditionTrue(r.set(t).Status.Conditions, "Available") {
		t.Errorf("conditions %+v", r.set(t).Status.Conditions)
	}
	version := r.set(t).ResourceVersion
	if writes, err := r.pass(t); err != nil || len(writes) > 0 || r.set(t).ResourceVersion != version {
		t.Errorf("at rest: %v, writes %q, version %s after %s", err, writes, r.set(t).ResourceVersion, version)
	}
	if got := r.events.taken(); len(got) > 0 {
		t.Errorf("events %q", got)
	}
}

// What goes down relies on what went up, and the number that a rollout begins with must be stored before it begins.
func TestOrderOfWrites(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.edit(t, image("b"))
	writes := short(r.stabilize(t))
	want := []string{
		"patch leaderworkersets llm-0-decode", "patch leaderworkersets llm-0-prefill",
		"create leaderworkersets llm-0-prefill", "create leaderworkersets llm-0-decode",
		"patch leaderworkersets llm-0-prefill 1", "patch leaderworkersets llm-0-decode 1", // up
		"create services llm-0-prefill-prv", "create services llm-0-decode-prv",
		"patch leaderworkersets llm-0-prefill 1", "patch leaderworkersets llm-0-decode 1", // down
		"patch leaderworkersets llm-0-prefill 2", "patch leaderworkersets llm-0-decode 2", // up
		"patch leaderworkersets llm-0-prefill 0", "patch leaderworkersets llm-0-decode 0", // down
		"delete services llm-0-decode-prv", "delete services llm-0-prefill-prv",
		"delete leaderworkersets llm-0-decode", "delete leaderworkersets llm-0-prefill",
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	got := r.events.taken()
	if n := slices.IndexFunc(got, func(e string) bool { return strings.Contains(e, "RollingUpdateStarted") }); n != 0 {
		t.Errorf("events %q", got)
	}
	if n := slices.IndexFunc(got, func(e string) bool { return strings.Contains(e, "RollingUpdateCompleted") }); n != len(got)-1 {
		t.Errorf("events %q", got)
	}
}

// A second change in mid-rollout drains the revision between before the first one.
func TestChangeDuringRollout(t *testing.T) {
	r := newRig(t, newSet("prefill=3", "decode=3"))
	r.stabilize(t)
	r.edit(t, image("b"))
	for r.groups(t) != "0 decode a: 2, 0 decode b: 1, 0 prefill a: 2, 0 prefill b: 1" {
		if writes, err := r.pass(t); err != nil || len(writes) == 0 {
			t.Fatalf("stops at %s: %v", r.groups(t), err)
		}
		r.ready(t)
	}
	r.edit(t, image("c"))
	var states []string
	for range 60 {
		writes, err := r.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		r.ready(t)
		if state := r.groups(t); len(states) == 0 || states[len(states)-1] != state {
			states = append(states, state)
		}
		if len(writes) == 0 {
			break
		}
	}
	if got := states[len(states)-1]; got != "0 decode c: 3, 0 prefill c: 3" {
		t.Fatalf("it ends with %s", got)
	}
	for _, state := range states {
		if strings.Contains(state, "prefill b: 1") && !strings.Contains(state, "prefill a: 2") {
			t.Errorf("a is drained before b: %s", state)
		}
	}
}

// A refused write ends what its slice relies on, and no other slice.
func TestRefusedWrites(t *testing.T) {
	ds := newSet("prefill=2", "decode=2")
	ds.Spec.Slices = ptr.To[int32](2)
	r := newRig(t, ds)
	r.stabilize(t)
	r.edit(t, image("b"))
	next := r.set(t)
	for range 2 {
		if _, err := r.pass(t); err != nil {
			t.Fatal(err)
		}
	}
	stuck := childName(t, next, "decode")
	r.refuse("patch", "leaderworkersets", stuck, apierrors.NewForbidden(schema.GroupResource{Resource: "leaderworkersets"}, stuck, errRefused))
	var errs []string
	for range 40 {
		r.ready(t)
		_, err := r.pass(t)
		if err != nil {
			errs = append(errs, err.Error())
		}
	}
	if len(errs) == 0 || !strings.Contains(errs[0], "slice 0: patching leaderworkerset ml/"+stuck) {
		t.Errorf("errors %q", errs)
	}
	if got, want := r.groups(t), "0 decode a: 2, 0 decode b: 0, 0 prefill a: 2, 0 prefill b: 1, 1 decode b: 2, 1 prefill b: 2"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if status := r.set(t).Status; len(status.RoleStatuses) != 2 || status.RoleStatuses[0].UpdatedReplicas < 2 {
		t.Errorf("the status is not written: %+v", status)
	}
}

// A version that the cache has not shown yet must not be written over: a user scaled the child meanwhile.
func TestConflict(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](5) })
	r.cached(t)
	name := childName(t, r.set(t), "prefill")
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	lws, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lws.Spec.Replicas = ptr.To[int32](3)
	if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.run(t); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got, want := r.groups(t), "0 decode a: 2, 0 prefill a: 3"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode a: 2, 0 prefill a: 5"; got != want {
		t.Errorf("in the end: groups %s, want %s", got, want)
	}
}

// A LeaderWorkerSet that another owner controls is neither adopted nor changed, and does not keep other roles from starting.
func TestNameOfSomebodyElse(t *testing.T) {
	ds := newSet("prefill=2", "decode=2")
	name := childName(t, ds, "prefill")
	r := newRig(t, ds, foreign(name))
	writes, err := r.pass(t)
	if err != nil {
		t.Errorf("error %v: a taken name is a result", err)
	}
	if diff := cmp.Diff([]string{"create leaderworkersets llm-0-prefill", "create leaderworkersets llm-0-decode"}, short(writes)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	want := "Warning FailedCreate Create Could not create " + name + ": another object that this DisaggregatedSet does not control has the name: " +
		"delete it, or rename the DisaggregatedSet or the role"
	if got := r.events.taken(); len(got) != 1 || got[0] != want {
		t.Errorf("events %q", got)
	}
	r.checkCondition(t, "True NameConflict Could not create "+name+": another object that this DisaggregatedSet does not control has the name")
	r.ready(t)
	for range 5 {
		if writes, err := r.pass(t); err != nil || len(writes) > 0 {
			t.Errorf("writes %q (%v) while the name is taken, and before it is looked at again", writes, err)
		}
	}
	lws, err := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || *lws.Spec.Replicas != 9 || len(lws.OwnerReferences) > 0 || len(lws.Labels) > 0 {
		t.Errorf("the foreign set is now %+v (%v)", lws, err)
	}
	if meta.IsStatusConditionTrue(r.set(t).Status.Conditions, "Available") {
		t.Error("the set is available without one of its roles")
	}
}

// Labels are what caches know children by. A child that has lost them is found by its name, and gets them back.
func TestLostLabels(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	name := childName(t, r.set(t), "decode")
	lws, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := lws.Labels
	lws.Labels = map[string]string{"mine": "kept"}
	if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pass(t); err != nil {
		t.Fatal(err)
	}
	labels["mine"] = "kept"
	if lws, err = client.Get(t.Context(), name, metav1.GetOptions{}); err != nil || !cmp.Equal(labels, lws.Labels) {
		t.Errorf("labels %v, want %v (%v)", lws.Labels, labels, err)
	}
}

// Deletions name one incarnation, and leave the rest to the garbage collector.
func TestRemovedSlices(t *testing.T) {
	ds := newSet("prefill=1", "decode=1")
	ds.Spec.Slices = ptr.To[int32](2)
	r := newRig(t, ds)
	r.stabilize(t)
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Slices = ptr.To[int32](1) })
	writes := r.stabilize(t)
	if len(writes) != 4 {
		t.Fatalf("writes %q", writes)
	}
	for i, line := range writes {
		kind := "services"
		if i >= 2 {
			kind = "leaderworkersets"
		}
		if !strings.HasPrefix(line, "delete "+kind+" llm-1-") || !strings.Contains(line, " Background uid-") {
			t.Errorf("write %d: %s", i, line)
		}
	}
	if got := r.events.taken(); len(got) != 2 || !strings.Contains(got[0], "for removed slice 1") {
		t.Errorf("events %q", got)
	}
}

// A set that is being deleted writes nothing: its children belong to the garbage collector.
func TestDeletedSet(t *testing.T) {
	ds := newSet("prefill=1", "decode=1")
	ds.DeletionTimestamp, ds.Finalizers = ptr.To(metav1.Now()), []string{"foregroundDeletion"}
	r := newRig(t, ds)
	if writes, err := r.pass(t); err != nil || len(writes) > 0 {
		t.Errorf("%v, writes %q", err, writes)
	}
	if got := r.set(t).Status; got.ObservedGeneration != 0 {
		t.Errorf("status %+v", got)
	}
}
