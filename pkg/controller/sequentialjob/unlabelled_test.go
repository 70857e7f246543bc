// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// cancelled is a sequence that a user has cancelled.
func cancelled(sj *batchv1alpha1.SequentialJob) {
	meta.SetStatusCondition(&sj.Status.Conditions, metav1.Condition{
		Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonCancelled,
	})
}

// TestChildWithoutLabelIsStopped checks that a child that no cache shows is stopped with its sequence, and does not outlive its finalizer.
func TestChildWithoutLabelIsStopped(t *testing.T) {
	for name, change := range map[string]func(*batchv1alpha1.SequentialJob){
		"cancelled":                         cancelled,
		"cancelled before its UID was seen": func(sj *batchv1alpha1.SequentialJob) { cancelled(sj); sj.Status.Steps[0].ChildUID = "" },
		"past its deadline": func(sj *batchv1alpha1.SequentialJob) {
			sj.Spec.ActiveDeadlineSeconds, sj.Status.ActiveSeconds = ptr.To[int64](10), 20
			sj.Status.Steps[0].ChildUID = ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			sj := newSequence(started, change)
			job := jobOf(sj)
			delete(job.Labels, batchv1alpha1.SequentialJobUIDKey)
			r := newRig(t, sj, job)
			if err := r.syncs(t, 4); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(r.written(), "delete jobs etl-0 Foreground uid-0") {
				t.Error("the child was not stopped")
			}
		})
	}
}

// TestUnreadableOwnerIsCached: the alarm about Jobs without an owner does not ask the API about a sequence that the server cannot read.
func TestUnreadableOwnerIsCached(t *testing.T) {
	r := newRig(t, newSequence())
	placeholder := newSequence(func(sj *batchv1alpha1.SequentialJob) {
		sj.UID, sj.Annotations = "", map[string]string{unreadable.Annotation: "its bytes are damaged"}
	})
	if err := r.caches.sequentialJobs.GetIndexer().Replace([]any{placeholder}, "0"); err != nil {
		t.Fatal(err)
	}
	if !r.newOrphans().Cached(orphans.Owner{Namespace: "ns", Name: "etl", UID: "uid-etl"}) {
		t.Error("the owner counts as missing")
	}
}
