// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// undone applies a plan every second for five minutes, after each of which another party does something. It returns the
// requests of a verb that were accepted, and the notes of the events of the last pass.
func undone(t *testing.T, p plan.Plan, verb string, kube *fake.Clientset, others func()) (writes int, notes string) {
	t.Helper()
	kube.PrependReactor(verb, "*", clienttesting.ObjectReaction(kube.Tracker()))
	writes, notes, reason := undoneAs(t, p, verb, kube, func(*plan.Observed) {}, others)
	if yields := strings.Contains(notes, "times within a minute"); yields != (reason == "UndoneByOthers") {
		t.Errorf("the reason of the condition is %q, and the events are %s", reason, notes)
	}
	return writes, notes
}

// undoneAs is undone for a plan that was made on something. It returns the reason of the condition about children, too.
func undoneAs(t *testing.T, p plan.Plan, verb string, kube *fake.Clientset, observed func(*plan.Observed),
	others func()) (writes int, notes, reason string) {
	t.Helper()
	accepts := slices.Clone(kube.ReactionChain)
	kube.PrependReactor(verb, "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, reactor := range accepts {
			if !reactor.Handles(action) {
				continue
			}
			if handled, object, err := reactor.React(action); handled {
				if err == nil {
					writes++
				}
				return handled, object, err
			}
		}
		return false, nil, nil
	})
	owner, now := refusedOwner(), clocktesting.NewFakePassiveClock(time.Now())
	s := syncerOf(owner, kube, now)
	for range 300 {
		now.SetTime(now.Now().Add(time.Second))
		obs := &plan.Observed{Set: owner, Now: metav1.NewTime(now.Now())}
		observed(obs)
		results, _ := s.Apply(t.Context(), obs, p)
		out := plan.Finish(*obs, p, results)
		notes, reason = fmt.Sprint(out.Others), ""
		if out.Status != nil {
			if c := meta.FindStatusCondition(out.Status.Conditions, leaderworkersetv1.ConditionChildCreationFailure); c != nil {
				reason = c.Reason
			}
		}
		others()
	}
	return writes, notes, reason
}

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// TestChildrenDeletedByOthers deletes children of each kind whenever they exist.
func TestChildrenDeletedByOthers(t *testing.T) {
	child := metav1.ObjectMeta{
		Namespace: "ns", Name: "child", Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lws"}, OwnerReferences: controlledBy("LeaderWorkerSet", "lws", "set"),
	}
	ofLeader := child
	ofLeader.OwnerReferences = controlledBy("Pod", "child", "leader")
	statefulSets := appsv1.SchemeGroupVersion.WithResource("statefulsets")
	for name, tc := range map[string]struct {
		plan     plan.Plan
		verb     string
		resource string
		noun     string
	}{
		"the leader StatefulSet": {plan.Plan{ApplyLeader: &appsv1.StatefulSet{ObjectMeta: child}}, "create", "statefulsets", "statefulset"},
		"a worker StatefulSet": {
			plan.Plan{CreateWorkers: []plan.NewWorkers{{StatefulSet: &appsv1.StatefulSet{ObjectMeta: ofLeader}}}}, "create", "statefulsets", "statefulset",
		},
		"a Service":  {plan.Plan{CreateServices: []*corev1.Service{{ObjectMeta: child}}}, "create", "services", "service"},
		"a revision": {plan.Plan{CreateRevision: &appsv1.ControllerRevision{ObjectMeta: child}}, "create", "controllerrevisions", "controllerrevision"},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			resource := statefulSets.GroupVersion().WithResource(tc.resource)
			if tc.resource == "services" {
				resource = corev1.SchemeGroupVersion.WithResource(tc.resource)
			}
			writes, notes := undone(t, tc.plan, tc.verb, kube, func() {
				_ = kube.Tracker().Delete(resource, "ns", "child") // it may not exist
			})
			if writes != 6 {
				t.Errorf("created %d times in five minutes, want 6", writes)
			}
			if !strings.Contains(notes, tc.noun+" child was deleted 3 times within a minute") {
				t.Errorf("no event names the child: %s", notes)
			}
		})
	}
}

// TestWorkersOfNewLeadersAreNoReversals has a group whose leader pod is replaced every second. The garbage collector
// deletes its workers each time.
func TestWorkersOfNewLeadersAreNoReversals(t *testing.T) {
	kube, workers := fake.NewClientset(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "child", Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lws"}, OwnerReferences: controlledBy("Pod", "child", "leader"),
	}}
	writes, _ := undone(t, plan.Plan{CreateWorkers: []plan.NewWorkers{{StatefulSet: workers}}}, "create", kube, func() {
		workers.OwnerReferences[0].UID += "x"
		_ = kube.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("statefulsets"), "ns", "child") // it may not exist
	})
	if writes != 300 {
		t.Errorf("created %d times, want 300", writes)
	}
}

// TestChildLabelsRemovedByOthers removes the label of a child whenever it has it.
func TestChildLabelsRemovedByOthers(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "child", UID: "uid-service", ResourceVersion: "5", OwnerReferences: controlledBy("LeaderWorkerSet", "lws", "set"),
	}}
	kube := fake.NewClientset(service)
	writes, notes := undone(t, plan.Plan{CreateServices: []*corev1.Service{service}}, "patch", kube, func() {
		if err := kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), service.DeepCopy(), "ns"); err != nil {
			t.Fatal(err)
		}
	})
	if writes != 5 {
		t.Errorf("the label is put back %d times in five minutes, want 5", writes)
	}
	if !strings.Contains(notes, "another party removed or changed the label "+leaderworkersetv1.SetNameLabelKey+" of service child 3 times") {
		t.Errorf("no event names the child: %s", notes)
	}
}

// TestLeaderChangedByOthers changes the replicas of the leader StatefulSet back after each apply.
func TestLeaderChangedByOthers(t *testing.T) {
	live := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "lws", UID: "uid-leaders", ResourceVersion: "5", OwnerReferences: controlledBy("LeaderWorkerSet", "lws", "set"),
		},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](7)},
	}
	for name, c := range map[string]struct {
		change func(wanted *appsv1.StatefulSet, second int)
		want   int
	}{
		"to the same value each time":      {func(*appsv1.StatefulSet, int) {}, 5},
		"and the controller to other ones": {func(wanted *appsv1.StatefulSet, second int) { wanted.Spec.Replicas = ptr.To(int32(second)) }, 300},
	} {
		t.Run(name, func(t *testing.T) {
			kube, wanted, second := fake.NewClientset(live), live.DeepCopy(), 0
			wanted.Spec.Replicas = ptr.To[int32](2)
			kube.PrependReactor("patch", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live, nil })
			observed := func(obs *plan.Observed) {
				second++
				obs.Leader = live
				c.change(wanted, second)
			}
			writes, notes, reason := undoneAs(t, plan.Plan{ApplyLeader: wanted}, "patch", kube, observed, func() {})
			if writes != c.want {
				t.Errorf("applied %d times in five minutes, want %d", writes, c.want)
			}
			const message = "another party removed or changed spec.replicas of statefulset lws 3 times within a minute"
			if yields := c.want < 300; strings.Contains(notes, message) != yields || (reason == "UndoneByOthers") != yields {
				t.Errorf("the reason of the condition is %q, and the events are %s", reason, notes)
			}
		})
	}
}

// TestTouchesRemovedByOthers removes the annotation of another look whenever it is there.
func TestTouchesRemovedByOthers(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("patch", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &appsv1.StatefulSet{}, nil
	})
	p := plan.Plan{TouchWorkers: []plan.Touch{{Ref: plan.Ref{Name: "lws-0", UID: "uid-workers"}, ResourceVersion: "5"}}}
	for name, c := range map[string]struct {
		served func(obs *plan.Observed)
		want   int
	}{
		"after one outage":             {func(obs *plan.Observed) { obs.ServedSince = time.Unix(1_000_000, 0) }, 5},
		"after an outage of each time": {func(obs *plan.Observed) { obs.ServedSince = obs.Now.Time }, 300},
	} {
		t.Run(name, func(t *testing.T) {
			if writes, _, _ := undoneAs(t, p, "patch", kube, c.served, func() {}); writes != c.want {
				t.Errorf("asked %d times in five minutes, want %d", writes, c.want)
			}
		})
	}
}

// TestRevisionsCreatedByOthers creates a revision again whenever it was deleted.
func TestRevisionsCreatedByOthers(t *testing.T) {
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "child", UID: "uid", OwnerReferences: controlledBy("LeaderWorkerSet", "lws", "set"),
	}}
	kube, p := fake.NewClientset(revision), plan.Plan{DeleteRevisions: []plan.Ref{{Name: "child", UID: "uid"}}}
	kube.PrependReactor("delete", "*", clienttesting.ObjectReaction(kube.Tracker()))
	writes, notes, _ := undoneAs(t, p, "delete", kube, func(*plan.Observed) {}, func() {
		next := revision.DeepCopy()
		next.UID = p.DeleteRevisions[0].UID + "x"
		if kube.Tracker().Create(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), next, "ns") == nil {
			p.DeleteRevisions[0].UID = next.UID
		}
	})
	if writes != 6 {
		t.Errorf("deleted %d times in five minutes, want 6", writes)
	}
	const message = "controllerrevision child was created again 3 times within a minute, each time after the controller had deleted it; " +
		"the API does not say who creates it, the audit log does; the controller deletes it again at "
	if !strings.Contains(notes, message) {
		t.Errorf("no event names the child: %s", notes)
	}
}
