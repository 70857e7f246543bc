// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// recreate replaces the set by a new one of its name, as kubectl delete --cascade=orphan and kubectl create do.
func (r *rig) recreate(t *testing.T, change func(*disaggregatedsetv1.DisaggregatedSet)) {
	t.Helper()
	r.changeAll(t, func(child metav1.Object) { child.SetOwnerReferences(nil) })
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) {
		ds.UID, ds.Status = "again", disaggregatedsetv1.DisaggregatedSetStatus{}
		change(ds)
	})
	r.cached(t)
	r.written()
	r.events.taken()
}

func same(*disaggregatedsetv1.DisaggregatedSet) {}

// changeAll changes all children.
func (r *rig) changeAll(t *testing.T, change func(metav1.Object)) {
	t.Helper()
	for _, child := range r.all(t) {
		change(child)
		var err error
		switch o := child.(type) {
		case *leaderworkersetv1.LeaderWorkerSet:
			_, err = r.client.LeaderworkersetV1().LeaderWorkerSets("ml").Update(t.Context(), o, metav1.UpdateOptions{})
		case *disaggregatedsetv1.DisaggregatedSetRoleScaler:
			_, err = r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").Update(t.Context(), o, metav1.UpdateOptions{})
		case *corev1.Service:
			_, err = r.kube.CoreV1().Services("ml").Update(t.Context(), o, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// all returns all children, whoever controls them.
func (r *rig) all(t *testing.T) (all []metav1.Object) {
	t.Helper()
	ctx, every := t.Context(), metav1.ListOptions{}
	sets, err1 := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").List(ctx, every)
	scalers, err2 := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").List(ctx, every)
	services, err3 := r.kube.CoreV1().Services("ml").List(ctx, every)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		all = append(all, &sets.Items[i])
	}
	for i := range scalers.Items {
		all = append(all, &scalers.Items[i])
	}
	for i := range services.Items {
		all = append(all, &services.Items[i])
	}
	return all
}

// verbs counts writes by their verb and resource.
func verbs(lines []string) map[string]int {
	counts := map[string]int{}
	for _, line := range lines {
		words := strings.Fields(line)
		counts[words[0]+" "+words[1]]++
	}
	return counts
}

// A set that is created again after it was deleted without its children takes them back, and creates nothing.
func TestChildrenOfAFormerSetAreAdopted(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	r.scale(t, "llm-decode", 4)
	r.stabilize(t)
	r.recreate(t, same)
	want := map[string]int{
		"patch leaderworkersets": 2, "patch services": 2, "patch disaggregatedsetrolescalers": 1, "update disaggregatedsetrolescalers/status": 0,
	}
	got := verbs(r.stabilize(t))
	for what, n := range want {
		if got[what] != n {
			t.Errorf("writes %v, want %v", got, want)
			break
		}
	}
	if len(got) > 3 {
		t.Errorf("writes %v", got)
	}
	for _, child := range r.all(t) {
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.UID != "again" {
			t.Errorf("%s has the owners %v", child.GetName(), child.GetOwnerReferences())
		} else if blocks := ptr.Deref(owner.BlockOwnerDeletion, false); blocks != (child.GetName() == "llm-decode") {
			t.Errorf("%s blocks the deletion of its owner: %t", child.GetName(), blocks)
		}
	}
	if got, want := r.groups(t), "0 decode a: 4, 0 prefill a: 2"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	events := r.events.taken()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Normal AdoptedChild Adopt Adopted DisaggregatedSetRoleScaler llm-decode, LeaderWorkerSet llm-0-") ||
		strings.Count(events[0], "Service llm-0-") != 2 || !strings.HasSuffix(events[0], ", which had no controller") {
		t.Errorf("events %q", events)
	}
}

// A new set with another template takes over what runs, and rolls it: it does not start a second service beside it.
func TestFormerRevisionsAreAdopted(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.recreate(t, image("b"))
	var states []string
	for range 60 {
		writes, err := r.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		if len(writes) == 0 {
			break
		}
		r.ready(t)
		states = append(states, r.groups(t))
	}
	if got, want := states[len(states)-1], "0 decode b: 2, 0 prefill b: 2"; got != want {
		t.Errorf("it ends with %s, want %s", got, want)
	}
	if full := slices.ContainsFunc(states, func(s string) bool { return strings.Contains(s, "a: 2") && strings.Contains(s, "b: 2") }); full {
		t.Errorf("both revisions have all groups: %q", states)
	}
}

// What is not like a child, what others control, and what is being deleted is not adopted, nor is anything by a set that is gone.
func TestOthersAreNotAdopted(t *testing.T) {
	other := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other", Controller: ptr.To(true)}}
	for name, tc := range map[string]struct {
		child func(metav1.Object)
		// set changes the set behind the back of the caches.
		set func(*disaggregatedsetv1.DisaggregatedSet)
	}{
		"children of another owner": {child: func(c metav1.Object) { c.SetOwnerReferences(other) }},
		"children that are being deleted": {child: func(c metav1.Object) {
			c.SetDeletionTimestamp(ptr.To(metav1.Now()))
			c.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
		}},
		"children without labels":  {child: func(c metav1.Object) { c.SetLabels(nil) }},
		"children of another role": {child: func(c metav1.Object) { c.GetLabels()[disaggregatedsetv1.RoleLabelKey] = "encode" }},
		"children of another set":  {child: func(c metav1.Object) { c.GetLabels()[disaggregatedsetv1.SetNameLabelKey] = "another" }},
		"a set that was replaced":  {set: func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.UID = "once-more" }},
		"a set that is going":      {set: func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.DeletionTimestamp = ptr.To(metav1.Now()) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet("prefill=2", "decode=External"))
			r.stabilize(t)
			r.recreate(t, same)
			if tc.child != nil {
				r.changeAll(t, tc.child)
				r.cached(t)
			}
			if tc.set != nil {
				r.edit(t, tc.set)
			}
			before := r.all(t)
			err := r.run(t)
			if diff := cmp.Diff(before, r.all(t)); diff != "" {
				t.Errorf("children (-before +after):\n%s", diff)
			}
			if events := r.events.taken(); tc.child != nil && (err != nil || len(events) == 0 || !strings.HasPrefix(events[0], "Warning ")) {
				t.Errorf("events %q (%v)", events, err)
			}
		})
	}
}

// An adoption that is refused is reported and tried again. It keeps no other child from being adopted, and nothing is
// created in place of the child.
func TestRefusedAdoption(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.recreate(t, same)
	stuck := childName(t, r.set(t), "decode")
	r.refuse("patch", "leaderworkersets", stuck, apierrors.NewForbidden(schema.GroupResource{Resource: "leaderworkersets"}, stuck, errRefused))
	for range 3 {
		if _, err := r.pass(t); err == nil || !strings.Contains(err.Error(), stuck) {
			t.Errorf("error %v", err)
		}
		events := r.events.taken()
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.HasPrefix(e, "Warning FailedAdopt Adopt Could not adopt LeaderWorkerSet "+stuck+": ")
		}) {
			t.Errorf("events %q", events)
		}
	}
	for _, child := range r.all(t) {
		if owned := metav1.IsControlledBy(child, r.set(t)); owned != (child.GetName() != stuck) {
			t.Errorf("%s is adopted: %t", child.GetName(), owned)
		}
	}
	if n := len(r.all(t)); n != 4 {
		t.Errorf("%d children, want 4", n)
	}
}

// An orphan that no cache shows yet does not belong to another owner.
func TestOrphanThatNoCacheShows(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.recreate(t, same)
	if err := r.caches.children.GetIndexer().Replace(nil, "0"); err != nil {
		t.Fatal(err)
	}
	if err := r.run(t); err == nil {
		t.Error("no error, so that nothing leads to another pass")
	}
	if events := r.events.taken(); slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning ") }) {
		t.Errorf("events %q", events)
	}
}

// While the cache shows children of the former set, they are about to lose their owner, or to be deleted. A set of
// another template that did not wait would run beside them.
func TestChildrenOfAFormerSetInCaches(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	shown := r.caches.children.List()
	r.recreate(t, image("b"))
	lag := func() {
		r.cached(t)
		if err := r.caches.children.GetIndexer().Replace(shown, "0"); err != nil {
			t.Fatal(err)
		}
	}
	lag()
	if obs, wait, err := r.Observe(t.Context(), key); obs != nil || wait != queue.LagRetry || err != nil {
		t.Errorf("observed %v, wait %s (%v); want to wait for the caches", obs, wait, err)
	}
	if obs, _, err := r.Observe(t.Context(), key); obs != nil || err != nil {
		t.Errorf("observed %v a little later (%v)", obs, err)
	}
	// The garbage collector may never come.
	r.former.Note(key, formerSince{"again", time.Now().Add(-formerWait)})
	if obs, wait, err := r.Observe(t.Context(), key); obs == nil || wait != 0 || err != nil {
		t.Errorf("observed %v, wait %s (%v) after %s", obs, wait, err, formerWait)
	}
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode b: 2, 0 prefill b: 2"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if noted := r.former.Noted(key); noted != (formerSince{}) {
		t.Errorf("still noted: %+v", noted)
	}
}

// An object that loses its owner is a reason to look at the set that may adopt it.
func TestOrphansLeadToTheirSet(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   int
	}{
		"an orphan":         {helper.Labels("llm", 0, "a", "decode"), 1},
		"an unknown object": {map[string]string{disaggregatedsetv1.SetNameLabelKey: "llm"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, lws := newRig(t), foreign("llm-0-a-decode")
			lws.Labels = tc.labels
			r.enqueueOwner(newWatched(lws))
			if got := r.queue.Len(); got != tc.want {
				t.Errorf("%d sets to look at, want %d", got, tc.want)
			}
		})
	}
}
