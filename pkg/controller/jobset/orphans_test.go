// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// lostSet owns the children in these tests, and is in no cache.
var lostSet = &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lost", UID: "lost-uid"}}

// namedAsLost makes an object a child of the lost set.
func namedAsLost(object metav1.Object, name string) {
	object.SetNamespace("ns")
	object.SetName(name)
	object.SetUID("uid")
	object.SetLabels(map[string]string{jobsetv1alpha2.JobSetNameKey: "lost"})
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(lostSet, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))})
}

// childrenByKind returns what the second look finds.
func childrenByKind(t *testing.T, watcher *orphans.Watcher) map[string][]orphans.Child {
	t.Helper()
	for _, source := range watcher.Sources {
		if _, err := source.Children(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]orphans.Child{}
	for _, source := range watcher.Sources {
		children, err := source.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for child := range children {
			got[source.Kind.Kind] = append(got[source.Kind.Kind], child)
		}
	}
	return got
}

// TestChildrenOfLostSets: the alarm looks at all that a JobSet owns, but for what is being deleted.
func TestChildrenOfLostSets(t *testing.T) {
	r := newRig(t, newSet())
	for _, tc := range []struct {
		informer *informers.Informer
		example  metav1.Object
	}{{r.caches.jobs, &batchv1.Job{}}, {r.caches.services, &corev1.Service{}}, {r.caches.claims, &corev1.PersistentVolumeClaim{}}} {
		for name, change := range map[string]func(metav1.Object){
			"owned": func(metav1.Object) {}, "released": func(o metav1.Object) { o.SetOwnerReferences(nil) },
			"deleting": func(o metav1.Object) { now := metav1.Now(); o.SetDeletionTimestamp(&now) },
		} {
			child := tc.example.(runtime.Object).DeepCopyObject().(metav1.Object)
			namedAsLost(child, name)
			change(child)
			kept, err := newTransform(r.Gates)(child)
			if err == nil {
				err = tc.informer.GetIndexer().Add(kept)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	owned := []orphans.Child{{Name: "owned", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "lost", UID: "lost-uid"}}}
	diff(t, "children", map[string][]orphans.Child{"Job": owned, "Service": owned, "PersistentVolumeClaim": owned}, childrenByKind(t, r.newOrphans()))
}

// TestGroupsOfLostSets: groups of pods are looked at although no set asks for any, and so no cache has them. Without a permission there are
// none; what cannot be read is not known.
func TestGroupsOfLostSets(t *testing.T) {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(jobsetgang.V1alpha2.GroupVersion().WithKind("PodGroup"))
	namedAsLost(group, "owned")
	r := newGroupRig(t, withGroups, jobsetgang.V1alpha2, group)
	r.dynamic.PrependReactor("list", "*", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Version != jobsetgang.V1alpha2.GroupVersion().Version {
			return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
		}
		return false, nil, nil
	})
	owned := []orphans.Child{{Name: "owned", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "lost", UID: "lost-uid"}}}
	diff(t, "children", map[string][]orphans.Child{"PodGroup": owned}, childrenByKind(t, r.newOrphans()))

	var answer error
	r.dynamic.PrependReactor("list", "*", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
	answer = apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", errors.New("no rule"))
	diff(t, "children without a permission", map[string][]orphans.Child{}, childrenByKind(t, r.newOrphans()))
	answer = apierrors.NewServiceUnavailable("not now")
	for _, source := range r.newOrphans().Sources {
		if _, err := source.Children(t.Context()); err != nil {
			t.Errorf("%s, first look: %v", source.Kind.Kind, err)
		}
		_, err := source.Children(t.Context())
		if groups := source.Kind.Group == "scheduling.k8s.io"; groups != (err != nil) {
			t.Errorf("%s: %v", source.Kind.Kind, err)
		}
	}
}
