// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
)

// TestChildrenOfLostSequences: the alarm looks at Jobs and JobSets of sequences, but for those that are being deleted.
func TestChildrenOfLostSequences(t *testing.T) {
	r := newRig(t, newSequence())
	lost := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lost", UID: "lost-uid"}}
	for _, tc := range []struct {
		informer *informers.Informer
		example  metav1.Object
	}{{r.caches.jobs, &batchv1.Job{}}, {r.caches.jobSets, &jobsetv1alpha2.JobSet{}}} {
		for name, change := range map[string]func(metav1.Object){
			"lost-0": func(metav1.Object) {}, "released": func(o metav1.Object) { o.SetOwnerReferences(nil) },
			"deleting": func(o metav1.Object) { now := metav1.Now(); o.SetDeletionTimestamp(&now) },
		} {
			child := tc.example.(runtime.Object).DeepCopyObject().(metav1.Object)
			child.SetNamespace("ns")
			child.SetName(name)
			child.SetUID("uid")
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(lost, batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"))})
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
	got, kinds := map[string][]orphans.Child{}, []string{}
	for _, source := range r.newOrphans().Sources {
		children, err := source.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, source.Kind.Kind)
		for child := range children {
			got[source.Kind.Kind] = append(got[source.Kind.Kind], child)
		}
	}
	owned := []orphans.Child{{Name: "lost-0", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "lost", UID: "lost-uid"}}}
	if diff := cmp.Diff(map[string][]orphans.Child{"Job": owned, "JobSet": owned}, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Job", "JobSet", "Workload"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
