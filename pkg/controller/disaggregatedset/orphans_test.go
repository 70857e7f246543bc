// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// TestChildrenOfLostSets: the alarm looks at all that a DisaggregatedSet owns, but for what is being deleted.
func TestChildrenOfLostSets(t *testing.T) {
	r := newRig(t)
	lost := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "lost", UID: "lost-uid"}}
	for _, tc := range []struct {
		informer *informers.Informer
		example  metav1.Object
	}{
		{r.caches.children, &leaderworkersetv1.LeaderWorkerSet{}}, {r.caches.services, &corev1.Service{}},
		{r.caches.scalers, &disaggregatedsetv1.DisaggregatedSetRoleScaler{}},
	} {
		for name, change := range map[string]func(metav1.Object){
			"owned": func(metav1.Object) {}, "released": func(o metav1.Object) { o.SetOwnerReferences(nil) },
			"deleting": func(o metav1.Object) { now := metav1.Now(); o.SetDeletionTimestamp(&now) },
		} {
			child := tc.example.(runtime.Object).DeepCopyObject().(metav1.Object)
			child.SetNamespace("ml")
			child.SetName(name)
			child.SetUID("uid")
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(lost, disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"))})
			change(child)
			kept, err := transform(child)
			if err == nil {
				err = tc.informer.GetIndexer().Add(kept)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string][]orphans.Child{}
	for _, source := range r.newOrphans().Sources {
		children, err := source.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for child := range children {
			got[source.Kind.Kind] = append(got[source.Kind.Kind], child)
		}
	}
	owned := []orphans.Child{{Name: "owned", UID: "uid", Owner: orphans.Owner{Namespace: "ml", Name: "lost", UID: "lost-uid"}}}
	want := map[string][]orphans.Child{"LeaderWorkerSet": owned, "Service": owned, "DisaggregatedSetRoleScaler": owned}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}
