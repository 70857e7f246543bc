// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// TestUnansweredStatus has a status write that was stored although its answer was lost, and a child that goes before the cache shows that
// its step has ended.
func TestUnansweredStatus(t *testing.T) {
	sj := newSequence(started)
	job := jobOf(sj)
	job.Status.Succeeded = 1
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	r := newRig(t, sj, job)
	r.cached(t)
	lost := true
	r.client.PrependReactor("update", "sequentialjobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		if !lost {
			return false, nil, nil
		}
		lost = false
		if _, _, err := r.checkVersion(action); err != nil {
			return true, nil, err
		}
		update := action.(clientgotesting.UpdateAction)
		if err := r.client.Tracker().Update(action.GetResource(), update.GetObject(), "ns"); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewTimeoutError("the answer was lost", 0)
	})
	if _, err := r.Sync(t.Context(), key); !apierrors.IsTimeout(err) {
		t.Fatalf("error %v, want that of the write", err)
	}
	if done := r.sequence(t).Status.Progress.CompletedIndices; len(done) != 1 {
		t.Fatalf("completed %v", done)
	}
	if err := r.caches.jobs.GetIndexer().Replace(nil, "0"); err != nil {
		t.Fatal(err)
	}
	if err := r.kube.BatchV1().Jobs("ns").Delete(t.Context(), "etl-0", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		Preconditions: metav1.NewUIDPreconditions("uid-0")}); err != nil {
		t.Fatal(err)
	}
	r.written()
	if _, err := r.Sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	diff(t, "writes while the cache is behind", []string(nil), r.written())
	if err := r.syncs(t, 3); err != nil {
		t.Fatal(err)
	}
	steps := r.sequence(t).Status.Steps
	diff(t, "the attempts of the finished step", int32(1), steps[0].Attempts)
	diff(t, "the state of the finished step", batchv1alpha1.StepSucceeded, steps[0].State)
	if _, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the finished step runs again: %v", err)
	}
}
