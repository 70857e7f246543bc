// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// newSet returns a set of the image a with roles such as prefill=2.
func newSet(roles ...string) *disaggregatedsetv1.DisaggregatedSet {
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml", UID: "set", Generation: 1, ResourceVersion: "1"}}
	for _, text := range roles {
		name, n, _ := strings.Cut(text, "=")
		role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
		if n == "External" {
			role.Scaling, n = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}, "1"
		}
		replicas, err := strconv.ParseInt(n, 10, 32)
		if err != nil {
			panic(err)
		}
		role.Spec.Replicas = ptr.To(int32(replicas))
		ds.Spec.Roles = append(ds.Spec.Roles, role)
	}
	image("a")(ds)
	return ds
}

// image gives all roles another template.
func image(name string) func(*disaggregatedsetv1.DisaggregatedSet) {
	return func(ds *disaggregatedsetv1.DisaggregatedSet) {
		for i := range ds.Spec.Roles {
			ds.Spec.Roles[i].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: name}}
		}
	}
}

// childName returns the name of the child of a role of a set, in slice 0.
func childName(t *testing.T, ds *disaggregatedsetv1.DisaggregatedSet, role string) string {
	t.Helper()
	revision, err := helper.Revision(ds)
	if err != nil {
		t.Fatal(err)
	}
	return helper.SetName(ds.Name, 0, revision, role)
}

func foreign(name string) *leaderworkersetv1.LeaderWorkerSet {
	return &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: "foreign", ResourceVersion: "7"}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{Replicas: ptr.To[int32](9)},
	}
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

var _ events.EventRecorder = &recorder{}

func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s %s ", eventType, reason, action)+fmt.Sprintf(note, args...))
}

// taken returns the events since it was asked last.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.events = nil }()
	return r.events
}

// groups lists the children and their replicas, by role and revision; revisions are called by the image of their templates.
func (r *rig) groups(t *testing.T) string {
	t.Helper()
	list, err := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for i := range list.Items {
		lws := &list.Items[i]
		image := lws.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image
		out[lws.Labels[disaggregatedsetv1.SliceLabelKey]+" "+lws.Labels[disaggregatedsetv1.RoleLabelKey]+" "+image] += *lws.Spec.Replicas
	}
	lines := make([]string, 0, len(out))
	for _, name := range slices.Sorted(maps.Keys(out)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, out[name]))
	}
	return strings.Join(lines, ", ")
}

// cached puts what the APIs hold into the caches, and their versions.
func (r *rig) cached(t *testing.T) {
	t.Helper()
	ctx, every := t.Context(), metav1.ListOptions{}
	sets, err1 := r.client.DisaggregatedsetV1().DisaggregatedSets("").List(ctx, every)
	scalers, err2 := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("").List(ctx, every)
	labeled := metav1.ListOptions{LabelSelector: disaggregatedsetv1.SetNameLabelKey}
	children, err3 := r.client.LeaderworkersetV1().LeaderWorkerSets("").List(ctx, labeled)
	services, err4 := r.kube.CoreV1().Services("").List(ctx, labeled)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	fill(t, r.caches.sets, sets.Items)
	fill(t, r.caches.scalers, scalers.Items)
	fill(t, r.caches.children, children.Items)
	fill(t, r.caches.services, services.Items)
	r.deps.Consistency.Forget(key)
}

func fill[T any](t *testing.T, informer *informers.Informer, items []T) {
	t.Helper()
	var objs []any
	for i := range items {
		obj, err := transform(any(&items[i]))
		if err != nil {
			t.Fatal(err)
		}
		objs = append(objs, obj)
	}
	if err := informer.GetIndexer().Replace(objs, "100"); err != nil {
		t.Fatal(err)
	}
}
