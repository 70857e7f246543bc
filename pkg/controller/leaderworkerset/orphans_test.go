// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// TestStatefulSetsOfLostOwners: the alarm looks at the StatefulSets of leaders, which the garbage collector deletes when the API does not
// know their set. Those of workers, others, and those that are being deleted do not count.
func TestStatefulSetsOfLostOwners(t *testing.T) {
	c := controllerOfSet(t)
	of := func(apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "lost", UID: "lost-uid", Controller: ptr.To(true)}
	}
	lws := leaderworkersetv1.SchemeGroupVersion.String()
	for name, change := range map[string]func(*appsv1.StatefulSet){
		"leaders": func(sts *appsv1.StatefulSet) { sts.OwnerReferences = []metav1.OwnerReference{of(lws, kindSet)} },
		"deleting": func(sts *appsv1.StatefulSet) {
			sts.OwnerReferences, sts.DeletionTimestamp = []metav1.OwnerReference{of(lws, kindSet)}, &metav1.Time{}
		},
		"workers":  func(sts *appsv1.StatefulSet) { sts.OwnerReferences = []metav1.OwnerReference{of("v1", "Pod")} },
		"released": func(sts *appsv1.StatefulSet) { sts.OwnerReferences = nil },
		"elsewhere": func(sts *appsv1.StatefulSet) {
			sts.OwnerReferences = []metav1.OwnerReference{of("example.com/v1", kindSet)}
		},
	} {
		sts := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "lost"}}}
		change(sts)
		kept, err := transform(sts)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.caches.statefulSets.GetIndexer().Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	var got []orphans.Child
	watcher := c.newOrphans()
	for child := range watcher.Children() {
		got = append(got, child)
	}
	want := []orphans.Child{{Name: "leaders", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "lost", UID: "lost-uid"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if watcher.Cached(want[0].Owner) {
		t.Error("the owner counts as known")
	}
}
