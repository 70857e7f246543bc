// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// scale writes what an autoscaler writes.
func (r *rig) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	client := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml")
	scaler, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scaler.Spec.Replicas = replicas
	if _, err := client.Update(t.Context(), scaler, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestScaledRole(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode a: 1, 0 prefill a: 2"; got != want {
		t.Fatalf("groups %s, want %s", got, want)
	}
	r.scale(t, "llm-decode", 4)
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode a: 4, 0 prefill a: 2"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	scaler, err := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").Get(t.Context(), "llm-decode", metav1.GetOptions{})
	if err != nil || scaler.Status.Replicas != 4 || scaler.Status.Selector == "" {
		t.Errorf("scaler %+v (%v)", scaler, err)
	}
	// More groups come during a rollout; fewer wait for its end.
	r.edit(t, image("b"))
	for range 4 {
		if _, err := r.pass(t); err != nil {
			t.Fatal(err)
		}
		r.ready(t)
	}
	r.scale(t, "llm-decode", 6)
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode b: 6, 0 prefill b: 2"; got != want {
		t.Errorf("after the rollout: groups %s, want %s", got, want)
	}
	// A role with a size in the set loses its scaler, and has the groups that the set says.
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) {
		ds.Spec.Roles[1].Scaling, ds.Spec.Roles[1].Spec.Replicas = nil, ptr.To[int32](3)
	})
	r.events.taken()
	r.stabilize(t)
	if got, want := r.groups(t), "0 decode b: 3, 0 prefill b: 2"; got != want {
		t.Errorf("without a scaler: groups %s, want %s", got, want)
	}
	if got := r.events.taken(); !slices.Contains(got, "Normal ScalerDeleted Delete Deleted scaler llm-decode (role decode is no longer External)") {
		t.Errorf("events %q", got)
	}
}

// A scaler that the set does not control is reported once, and not again at each pass; when it is gone, the role gets its own.
func TestScalerOfSomebodyElse(t *testing.T) {
	taken := &disaggregatedsetv1.DisaggregatedSetRoleScaler{ObjectMeta: metav1.ObjectMeta{Name: "llm-decode", Namespace: "ml", UID: "foreign", ResourceVersion: "3"}}
	taken.Spec.Replicas = 7
	r := newRig(t, newSet("prefill=2", "decode=External"), taken)
	r.stabilize(t)
	var conflicts int
	for _, event := range r.events.taken() {
		if strings.HasPrefix(event, "Warning ScalerConflict Conflict Scaler llm-decode exists") {
			conflicts++
		}
	}
	if conflicts != 1 {
		t.Errorf("%d events about the conflict, want 1", conflicts)
	}
	if got, want := r.groups(t), "0 decode a: 0, 0 prefill a: 2"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	client := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml")
	if scaler, err := client.Get(t.Context(), "llm-decode", metav1.GetOptions{}); err != nil || !cmp.Equal(taken, scaler) {
		t.Errorf("the foreign scaler is now %+v (%v)", scaler, err)
	}
	if err := r.client.Tracker().Delete(disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsetrolescalers"), "ml", "llm-decode"); err != nil {
		t.Fatal(err)
	}
	r.stabilize(t)
	if scaler, err := client.Get(t.Context(), "llm-decode", metav1.GetOptions{}); err != nil || !metav1.IsControlledBy(scaler, r.set(t)) {
		t.Errorf("scaler %+v (%v)", scaler, err)
	}
}

// A pass on caches that do not show the last one would repeat it.
func TestLaggingCaches(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	if _, err := r.pass(t); err != nil {
		t.Fatal(err)
	}
	if obs, wait, err := r.Observe(t.Context(), key); obs != nil || wait != queue.LagRetry || err != nil {
		t.Errorf("observed %v, wait %s (%v); want to wait for own writes", obs, wait, err)
	}
	r.cached(t)
	obs, wait, err := r.Observe(t.Context(), key)
	if obs == nil || wait != 0 || err != nil || len(obs.Children) != 2 {
		t.Fatalf("observed %v, wait %s (%v)", obs, wait, err)
	}
	r.deps.Consistency.Deleted(key, obs.Children[0].UID)
	if obs, wait, err := r.Observe(t.Context(), key); obs != nil || wait != queue.LagRetry || err != nil {
		t.Errorf("observed %v, wait %s (%v); want to wait for an own deletion", obs, wait, err)
	}
}

// What is observed belongs to this incarnation of the set, in its namespace; a set that is gone is forgotten.
func TestObserve(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	r.cached(t)
	obs, _, err := r.Observe(t.Context(), key)
	if err != nil || len(obs.Children) != 2 || len(obs.Services) != 2 || len(obs.Scalers) != 1 || len(obs.TakenScalers) != 0 {
		t.Fatalf("observed %+v (%v)", obs, err)
	}
	if obs.Now.Nanosecond() != 0 || obs.Now.Time.Before(time.Now().Add(-time.Hour)) {
		t.Errorf("time %s", obs.Now)
	}
	again := r.set(t)
	again.UID = "another"
	if err := r.caches.sets.GetIndexer().Replace([]any{again}, "0"); err != nil {
		t.Fatal(err)
	}
	r.former.Note(key, formerSince{"another", time.Now().Add(-formerWait)}) // it does not wait for the end of the former one
	obs, _, err = r.Observe(t.Context(), key)
	if err != nil || len(obs.Children)+len(obs.Services)+len(obs.Scalers) != 0 || !obs.TakenScalers["llm-decode"] {
		t.Errorf("another incarnation observes %+v (%v)", obs, err)
	}
	r.conflicts.Note(key, map[string]bool{"llm-decode": true})
	if err := r.caches.sets.GetIndexer().Replace(nil, "0"); err != nil {
		t.Fatal(err)
	}
	if obs, wait, err := r.Observe(t.Context(), key); obs != nil || wait != 0 || err != nil || len(r.conflicts.Noted(key)) != 0 || r.former.Noted(key) != (formerSince{}) {
		t.Errorf("a set that is gone: %+v, wait %s, noted %v (%v)", obs, wait, r.conflicts.Noted(key), err)
	}
}

// grants returns what the ClusterRole of the controller grants beyond watching, as lines of verb and resource.
func grants(t *testing.T) sets.Set[string] {
	t.Helper()
	data, err := os.ReadFile("../../../artifacts/components/disaggregatedset/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n---\n")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(first), role); err != nil {
		t.Fatal(err)
	}
	lines := sets.New[string]()
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				lines.Insert(verb + " " + resource)
			}
		}
	}
	return lines
}

// The role must grant what the controller asks for, and nothing that it never asks for.
func TestPermissions(t *testing.T) {
	asked := sets.New(
		// Caches list and watch. get comes with them, as in the roles of the other controllers.
		"get disaggregatedsets", "list disaggregatedsets", "watch disaggregatedsets",
		"list disaggregatedsetrolescalers", "watch disaggregatedsetrolescalers",
		"list leaderworkersets", "watch leaderworkersets", "list services", "watch services",
		// Checked when children name the set as their owner.
		"update disaggregatedsets/finalizers",
	)
	asked = asked.Union(everyRequest(t))
	granted := grants(t)
	if missing := asked.Difference(granted); missing.Len() > 0 {
		t.Errorf("not granted: %q", sets.List(missing))
	}
	if unused := granted.Difference(asked); unused.Len() > 0 {
		t.Errorf("granted, but never asked for: %q", sets.List(unused))
	}
}

// everyRequest returns what a controller asks for that creates, repairs, rolls, scales and deletes children.
func everyRequest(t *testing.T) sets.Set[string] {
	t.Helper()
	r := newRig(t, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	r.loseLabels(t)
	if err := r.caches.scalers.GetIndexer().Replace(nil, "0"); err != nil { // as a cache that lags
		t.Fatal(err)
	}
	if err := r.run(t); err != nil {
		t.Fatal(err)
	}
	r.stabilize(t)
	r.edit(t, image("b"))
	r.stabilize(t)
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Roles[1].Scaling = nil })
	r.stabilize(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	return sets.KeySet(r.own)
}

// loseLabels removes the labels of all children, as a user might.
func (r *rig) loseLabels(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	sets, err1 := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").List(ctx, metav1.ListOptions{})
	scalers, err2 := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").List(ctx, metav1.ListOptions{})
	services, err3 := r.kube.CoreV1().Services("ml").List(ctx, metav1.ListOptions{})
	errs := []error{err1, err2, err3}
	for i := range sets.Items {
		sets.Items[i].Labels = nil
		_, err := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").Update(ctx, &sets.Items[i], metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	for i := range scalers.Items {
		scalers.Items[i].Labels = nil
		_, err := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").Update(ctx, &scalers.Items[i], metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	for i := range services.Items {
		services.Items[i].Labels = nil
		_, err := r.kube.CoreV1().Services("ml").Update(ctx, &services.Items[i], metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	r.cached(t)
}
