// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

func leaderOf(owners []metav1.OwnerReference) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lws", OwnerReferences: owners, Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lws"}},
	}
}

// TestLeaderIsCreatedAndNotApplied has a StatefulSet of another party appear after the caches were read. A server-side apply that names no
// UID would be merged into it.
func TestLeaderIsCreatedAndNotApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		found []metav1.OwnerReference
		// applies is how often the StatefulSet is applied.
		applies int
		taken   bool
	}{
		"the set controls the StatefulSet":     {controlledBy("LeaderWorkerSet", "lws", "set"), 1, false},
		"nothing controls the StatefulSet":     {nil, 0, true},
		"another set controls the StatefulSet": {controlledBy("LeaderWorkerSet", "lws", "another"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			kube, appeared := fake.NewClientset(), leaderOf(tc.found)
			appeared.UID, appeared.ResourceVersion = "found", "7"
			kube.PrependReactor("*", "statefulsets", func(action clienttesting.Action) (handled bool, _ runtime.Object, err error) {
				_, has := action.(clienttesting.CreateAction)
				if patch, ok := action.(clienttesting.PatchAction); ok {
					if !namesUID(t, patch.GetPatch(), "found") {
						t.Errorf("a patch that names no UID: %s", patch.GetPatch())
					}
					return true, appeared.DeepCopy(), nil
				}
				if !has { // it appears after the first look
					defer func() { _ = kube.Tracker().Add(appeared.DeepCopy()) }()
				} else if _, err := kube.Tracker().Get(action.GetResource(), "ns", "lws"); err != nil {
					_ = kube.Tracker().Add(appeared.DeepCopy())
				}
				return clienttesting.ObjectReaction(kube.Tracker())(action)
			})
			owner := refusedOwner()
			s := syncerOf(owner, kube, clock.RealClock{})
			results, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.Now()},
				plan.Plan{ApplyLeader: leaderOf(controlledBy("LeaderWorkerSet", "lws", "set"))})
			if err != nil || results.NameTaken != tc.taken {
				t.Errorf("the name is taken: %t, error %v", results.NameTaken, err)
			}
			applies := 0
			for _, action := range kube.Actions() {
				if action.Matches("patch", "statefulsets") {
					applies++
				}
			}
			if applies != tc.applies {
				t.Errorf("applied %d times, want %d", applies, tc.applies)
			}
		})
	}
}

// namesUID returns whether a patch is for the object with a UID only.
func namesUID(t *testing.T, patch []byte, uid types.UID) bool {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &object); err != nil {
		t.Fatal(err)
	}
	return object.UID == uid
}

// TestFieldsOfCreationAreRemoved creates a leader StatefulSet, and applies it without some of its fields. Fields that belong to the creation
// would stay.
func TestFieldsOfCreationAreRemoved(t *testing.T) {
	for name, lookBefore := range map[string]bool{"the next pass applies": false, "the same is applied first": true} {
		t.Run(name, func(t *testing.T) {
			kube, owner := fake.NewClientset(), refusedOwner()
			s := syncerOf(owner, kube, clock.RealClock{})
			pass := func(leader *appsv1.StatefulSet, p plan.Plan) *appsv1.StatefulSet {
				t.Helper()
				if leader != nil {
					cached, err := transform(leader)
					if err != nil {
						t.Fatal(err)
					}
					leader = cached.(*appsv1.StatefulSet)
				}
				if _, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Leader: leader, Now: metav1.Now()}, p); err != nil {
					t.Fatal(err)
				}
				stored, err := kube.AppsV1().StatefulSets("ns").Get(t.Context(), "lws", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return stored
			}
			wanted := leaderOf(controlledBy(kindSet, "lws", "set"))
			wanted.OwnerReferences[0].APIVersion = leaderworkersetv1.SchemeGroupVersion.String()
			wanted.Annotations = map[string]string{"stays": "1", "goes": "1"}
			leader := pass(nil, plan.Plan{ApplyLeader: wanted})
			if !plan.OwnedAsCreated(leader) {
				t.Fatalf("the fields do not belong to the creation: %+v", leader.ManagedFields)
			}
			if lookBefore {
				if leader = pass(leader, plan.Plan{ApplyLeader: wanted}); plan.OwnedAsCreated(leader) {
					t.Errorf("the fields belong to the creation still: %+v", leader.ManagedFields)
				}
			}
			next := wanted.DeepCopy()
			delete(next.Annotations, "goes")
			leader = pass(leader, plan.Plan{ApplyLeader: next})
			if diff := cmp.Diff(map[string]string{"stays": "1"}, leader.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if plan.OwnedAsCreated(leader) {
				t.Errorf("the fields belong to the creation still: %+v", leader.ManagedFields)
			}
		})
	}
}

// TestUnobservedLeaderReleasesNothing has a StatefulSet that no cache shows, because it has lost its labels, in the middle of a rolling
// update: the plan for a set without one must not let its controller replace all leader pods at once.
func TestUnobservedLeaderReleasesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		revision string
		want     int32
	}{
		"of the same revision":   {"b", 3},
		"of a former revision":   {"a", 5},
		"that lost its revision": {"", 5},
	} {
		t.Run(name, func(t *testing.T) {
			found, wanted := leaderOf(controlledBy(kindSet, "lws", "set")), leaderOf(controlledBy(kindSet, "lws", "set"))
			found.UID, found.ResourceVersion, found.Spec.Replicas = "found", "7", ptr.To[int32](5)
			found.Labels = map[string]string{leaderworkersetv1.RevisionKey: tc.revision}
			found.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](3)}
			wanted.Labels[leaderworkersetv1.RevisionKey] = "b"
			kube, owner := fake.NewClientset(found), refusedOwner()
			var applied appsv1.StatefulSet
			kube.PrependReactor("patch", "statefulsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return true, found.DeepCopy(), json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &applied)
			})
			s := syncerOf(owner, kube, clock.RealClock{})
			if _, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.Now()}, plan.Plan{ApplyLeader: wanted}); err != nil {
				t.Fatal(err)
			}
			if u := applied.Spec.UpdateStrategy.RollingUpdate; u == nil || *u.Partition != tc.want {
				t.Errorf("applied with %+v, want partition %d", u, tc.want)
			}
			if s.applied.Noted(cache.MetaObjectToName(owner)).hash == plan.ApplyHash(wanted) {
				t.Error("the next pass would take the wanted StatefulSet for applied")
			}
		})
	}
}
