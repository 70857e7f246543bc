// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// TestSuspensionsByOthers has Kueue with manageJobsWithoutQueueName, which suspends a Job that names no queue whenever it is resumed.
func TestSuspensionsByOthers(t *testing.T) {
	sj := newSequence(started)
	job := jobOf(sj)
	job.ResourceVersion = "1" // an answer without a version is about no Job
	r := newRig(t, sj, job)
	// The tracker of the clients keeps the managers of fields to itself.
	r.kube.PrependReactor("get", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		stored, err := r.kube.Tracker().Get(action.GetResource(), "ns", action.(clientgotesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		job := stored.(*batchv1.Job).DeepCopy()
		job.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kueue", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`),
		}}
		return true, job, nil
	})
	suspends := func() {
		t.Helper()
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		job.Spec.Suspend = ptr.To(true)
		if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
			t.Fatal(err)
		}
	}
	passes := func(n int) (resumptions int) {
		t.Helper()
		for range n {
			suspends()
			if err := r.syncs(t, 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, write := range r.written() {
			if strings.HasPrefix(write, "patch jobs etl-0 ") {
				resumptions++
			}
		}
		return resumptions
	}
	progressing := func() string {
		c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionProgressing)
		return c.Reason + ": " + c.Message
	}

	diff(t, "how often the Job is resumed", 3, passes(10))
	const message = "Job 0 waits: kueue suspends job etl-0 again whenever it is resumed; the controller resumes it again at "
	diff(t, "Progressing", "SuspendedByOthers: "+message, untilTime(progressing()))
	diff(t, "whether it is reported", true, slices.ContainsFunc(r.events.all(), func(e string) bool { return strings.HasPrefix(e, "Warning SuspendedByOthers "+message) }))

	// A change of the sequence is a reason to try again.
	next := r.sequence(t)
	next.Generation++
	if err := r.client.Tracker().Update(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs"), next, "ns"); err != nil {
		t.Fatal(err)
	}
	diff(t, "how often the Job is resumed after a change", 3, passes(10))
}

// TestUnansweredResumptions has another client suspend a Job whenever it is resumed, while no resumption gets its answer. Once the Job has
// changed since, a resumption counts as stored.
func TestUnansweredResumptions(t *testing.T) {
	for name, test := range map[string]struct {
		stored   bool
		resumed  int
		progress string
	}{
		"answers are lost":  {stored: true, resumed: 4, progress: batchv1alpha1.ReasonSuspendedByOthers},
		"requests are lost": {resumed: 10, progress: batchv1alpha1.ReasonJobStarted},
	} {
		t.Run(name, func(t *testing.T) {
			sj := newSequence(started)
			job := jobOf(sj)
			job.Spec.Suspend = ptr.To(true)
			r := newRig(t, sj, job)
			asked := 0
			r.kube.PrependReactor("patch", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
				asked++
				return true, nil, errors.New("read: connection reset by peer")
			})
			for i := range 10 {
				if test.stored { // and suspended again since
					job.ResourceVersion = strconv.Itoa(i)
				}
				if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
					t.Fatal(err)
				}
				_ = r.syncs(t, 1)
			}
			diff(t, "how often the Job is to be resumed", test.resumed, asked)
			c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionProgressing)
			diff(t, "the reason of Progressing", test.progress, c.Reason)
		})
	}
}

// TestNotFoundIsNoResumption has an API that does not know the Job which a cache shows as suspended, for example while it moves to another
// server. No other client has suspended the Job again.
func TestNotFoundIsNoResumption(t *testing.T) {
	sj := newSequence(started)
	job := jobOf(sj)
	job.Spec.Suspend = ptr.To(true)
	r := newRig(t, sj, job)
	asked := 0
	r.kube.PrependReactor("patch", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, nil, apierrors.NewNotFound(batchv1.Resource("jobs"), job.Name)
	})
	if err := r.syncs(t, 10); err != nil {
		t.Fatal(err)
	}
	diff(t, "how often the Job is to be resumed", 10, asked)
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionProgressing)
	diff(t, "the reason of Progressing", batchv1alpha1.ReasonJobStarted, c.Reason)
}
