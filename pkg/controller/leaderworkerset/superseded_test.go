// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// changing lets a set change in the cache once the API gets a certain request. It returns all requests that write.
func changing(t *testing.T, p plan.Plan, at string, change func(*leaderworkersetv1.LeaderWorkerSet)) (writes []string) {
	t.Helper()
	kube, owner := fake.NewClientset(), refusedOwner()
	kube.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "get" {
			return false, nil, nil
		}
		write := action.GetVerb() + " " + action.GetResource().Resource
		if writes = append(writes, write); write == at {
			next := owner.DeepCopy()
			next.ResourceVersion = "2"
			change(next)
			owner = next
		}
		return false, nil, nil
	})
	now := clocktesting.NewFakePassiveClock(time.Now())
	s := syncerOf(owner, kube, now)
	s.Recorder = noEvents{}
	s.Loop.Kind = decided{s.Loop.Kind, func() *leaderworkersetv1.LeaderWorkerSet { return owner }, metav1.NewTime(now.Now()), p}
	_, _ = s.Sync(t.Context(), cache.MetaObjectToName(owner)) // the set has changed, so that its status may not be stored
	return writes
}

// decided is the kind with one plan for all that is observed, which is only the owner.
type decided struct {
	Kind
	owner func() *leaderworkersetv1.LeaderWorkerSet
	now   metav1.Time
	p     plan.Plan
}

// Owner implements Kind.
func (d decided) Owner(cache.ObjectName) (*leaderworkersetv1.LeaderWorkerSet, error) {
	return d.owner(), nil
}

// Children implements Kind.
func (d decided) Children(_ context.Context, _ cache.ObjectName, set *leaderworkersetv1.LeaderWorkerSet) (*plan.Observed, []consistency.Child, error) {
	return &plan.Observed{Set: set, Now: d.now}, nil, nil
}

// Complete implements Kind.
func (decided) Complete(context.Context, cache.ObjectName, *plan.Observed) (bool, error) {
	return false, nil
}

// Decide implements Kind.
func (d decided) Decide(plan.Observed) plan.Plan { return d.p }

// noEvents drops events.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// TestSetChangesDuringAPass lets a set change after each of the writes of a pass. No other write follows.
func TestSetChangesDuringAPass(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: controlledBy("LeaderWorkerSet", "lws", "set"),
			Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lws"}}
	}
	p := plan.Plan{
		CreateRevision: &appsv1.ControllerRevision{ObjectMeta: meta("lws-1")}, ApplyLeader: &appsv1.StatefulSet{ObjectMeta: meta("lws")},
		CreateServices: []*corev1.Service{{ObjectMeta: meta("lws")}},
		DeleteLeaders:  []plan.Deletion{{Ref: plan.Ref{Name: "lws-0", UID: "0"}}}, TouchWorkers: []plan.Touch{{Ref: plan.Ref{Name: "lws-1"}}},
		DeleteRevisions: []plan.Ref{{Name: "lws-0", UID: "0"}},
	}
	for i := range 3 {
		worker := &appsv1.StatefulSet{ObjectMeta: meta(fmt.Sprintf("lws-%d", i))}
		worker.OwnerReferences = controlledBy("Pod", worker.Name, types.UID(worker.Name))
		p.CreateWorkers = append(p.CreateWorkers, plan.NewWorkers{StatefulSet: worker})
	}
	all := changing(t, p, "", nil)
	if len(all) < 9 {
		t.Fatalf("the writes of a whole pass are %q", all)
	}
	for name, change := range map[string]func(*leaderworkersetv1.LeaderWorkerSet){
		"it is deleted":            func(set *leaderworkersetv1.LeaderWorkerSet) { set.DeletionTimestamp = new(metav1.Now()) },
		"its spec changes":         func(set *leaderworkersetv1.LeaderWorkerSet) { set.Generation++ },
		"another set has the name": func(set *leaderworkersetv1.LeaderWorkerSet) { set.UID = "another" },
	} {
		for _, at := range slices.Compact(slices.Sorted(slices.Values(all))) {
			want := all[:slices.Index(all, at)+1]
			if d := cmp.Diff(want, changing(t, p, at, change)); d != "" {
				t.Errorf("%s once there was the request to %s: writes (-want +got):\n%s", name, at, d)
			}
		}
	}
	if d := cmp.Diff(all, changing(t, p, all[0], func(set *leaderworkersetv1.LeaderWorkerSet) { set.Status.Replicas++ })); d != "" {
		t.Errorf("its counts change: writes (-want +got):\n%s", d)
	}
}
