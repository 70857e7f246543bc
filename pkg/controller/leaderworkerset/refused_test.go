// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	sets "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// refusedOwner is the set of which all changes are refused.
func refusedOwner() *leaderworkersetv1.LeaderWorkerSet {
	return &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lws", UID: "set"}}
}

// applyRefused applies a plan to an API that answers all changes and deletions with an error. It returns the results
// and the number of those requests, by resource.
func applyRefused(t *testing.T, p plan.Plan, refusal error, objects ...runtime.Object) (plan.Results, map[string]int) {
	t.Helper()
	kube, calls := fake.NewClientset(objects...), map[string]int{}
	for _, verb := range []string{"delete", "patch"} {
		kube.PrependReactor(verb, "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			calls[verb+" "+action.GetResource().Resource]++
			return true, nil, refusal
		})
	}
	owner := refusedOwner()
	s := syncerOf(owner, kube, clock.RealClock{})
	results, err := s.Apply(t.Context(), &plan.Observed{Set: owner, Now: metav1.Now()}, p)
	if err == nil {
		t.Error("a pass of which all is refused must fail")
	}
	return results, calls
}

// syncerOf returns a Syncer of a set that remembers nothing.
func syncerOf(owner *leaderworkersetv1.LeaderWorkerSet, kube *fake.Clientset, now clock.PassiveClock) *Syncer {
	client := sets.NewClientset(owner)
	return NewSyncer(SyncerConfig{
		Host: &children.Host{Runner: children.NewSlowStart(1), Consistency: consistency.NewConsistencyStore(now, nil), Clock: now, Shuffle: rand.Perm},
		Clients: Clients{
			Sets: func(namespace string) children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet] {
				return client.LeaderworkersetV1().LeaderWorkerSets(namespace)
			},
			StatefulSets: func(namespace string) children.Client[*appsv1.StatefulSet] {
				return kube.AppsV1().StatefulSets(namespace)
			},
			Pods:     func(namespace string) children.Client[*corev1.Pod] { return kube.CoreV1().Pods(namespace) },
			Services: func(namespace string) children.Client[*corev1.Service] { return kube.CoreV1().Services(namespace) },
			Revisions: func(namespace string) children.Client[*appsv1.ControllerRevision] {
				return kube.AppsV1().ControllerRevisions(namespace)
			},
			PodGroups: func(string) children.Client[*unstructured.Unstructured] { return nil },
			Leaders:   func(context.Context, cache.ObjectName) ([]Child, error) { return nil, nil },
		},
	})
}

// orphansOf returns a StatefulSet and a Service that are made like those of a group.
func orphansOf(ref plan.Ref) []metav1.Object {
	labels := map[string]string{leaderworkersetv1.SetNameLabelKey: "lws", leaderworkersetv1.GroupIndexLabelKey: "0"}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: ref.Name, UID: ref.UID, Labels: labels}
	selected := maps.Clone(labels)
	selected[leaderworkersetv1.GroupKeyLabelKey] = helper.GroupKey("ns", ref.Name)
	return []metav1.Object{
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: selected}}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels}},
	}
}

// TestRefusedChangesEndThePass refuses all that is deleted or changed. The controller does not ask for each of the others.
func TestRefusedChangesEndThePass(t *testing.T) {
	const groups = 100
	var p plan.Plan
	var orphans []runtime.Object
	for i := range groups {
		ref := plan.Ref{Name: fmt.Sprintf("lws-%d", i), UID: types.UID(fmt.Sprint(i))}
		p.DeleteLeaders = append(p.DeleteLeaders, plan.Deletion{Ref: ref, Group: int32(i), Requested: true}) //nolint:gosec // a small number
		p.DeleteRevisions = append(p.DeleteRevisions, ref)
		p.TouchWorkers = append(p.TouchWorkers, plan.Touch{Ref: ref, ResourceVersion: "1"})
		for _, orphan := range orphansOf(ref) {
			orphans = append(orphans, orphan.(runtime.Object))
			p.Adopt = append(p.Adopt, plan.Adoption{Orphan: *plan.OrphanOf(orphan), Owner: metav1.OwnerReference{UID: "set", Controller: new(true)}})
		}
	}
	resource := appsv1.Resource("things")
	for name, tc := range map[string]struct {
		refusal error
		// most is how many requests of each kind are made at most.
		most int
	}{
		"the controller lacks a permission": {apierrors.NewForbidden(resource, "x", errors.New(`User "u" cannot patch resource "things" in API group "apps" in the namespace "ns"`)), 1},
		"a webhook denies each of them":     {apierrors.NewForbidden(resource, "x", errors.New(`admission webhook "w" denied the request: no`)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			results, calls := applyRefused(t, p, tc.refusal, orphans...)
			for _, call := range []string{"delete pods", "delete controllerrevisions", "patch services"} {
				if n := calls[call]; n < 1 || n > tc.most {
					t.Errorf("%d requests to %s, want 1 to %d", n, call, tc.most)
				}
			}
			if n := calls["patch statefulsets"]; n < 1 || n > 2*tc.most { // to adopt and to touch
				t.Errorf("%d requests to patch statefulsets, want 1 to %d", n, 2*tc.most)
			}
			if n := len(results.KeptLeaders); n != groups {
				t.Errorf("%d leaders are known to stay, want all %d", n, groups)
			}
		})
	}
}
