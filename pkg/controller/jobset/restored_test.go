// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// restoredRig is a rig with the record of a store that was restored at a revision, and a set that had started before.
func restoredRig(t *testing.T, revision int64) *rig {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	record := &witness.Record{UUID: "a", Floor: 1, Restored: &witness.Restored{Revision: revision, Time: metav1.NewTime(time.Now())}}
	if err := record.Write(cm); err != nil {
		t.Fatal(err)
	}
	js := newSet()
	js.ResourceVersion = "100"
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 2, Active: 2}}
	return newRig(t, js, cm)
}

func (r *rig) jobsCreated() (n int) {
	for _, request := range r.requests() {
		if strings.HasPrefix(request, "create jobs ") {
			n++
		}
	}
	return n
}

// existingJobs returns the number of Jobs.
func (r *rig) existingJobs(t *testing.T) int {
	t.Helper()
	list, err := r.kube.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestRestoredSetIsHeldUntilItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := restoredRig(t, 100)
		r.run(t)
		eventually(t, "the set is held", func() bool {
			return meta.IsStatusConditionTrue(r.set(t).Status.Conditions, jobsetv1alpha2.Held)
		})
		if n := r.jobsCreated(); n != 0 {
			t.Errorf("%d Jobs were created", n)
		}
		eventually(t, "an event says so", func() bool {
			return strings.Contains(strings.Join(r.events.all(), "\n"), "Warning RestoredFromBackup Reconciling: the store was restored from a backup")
		})
		js := r.set(t)
		meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.Held).Status = metav1.ConditionFalse
		if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its Jobs are created", func() bool { return r.existingJobs(t) == 2 })
		diff(t, "creations of Jobs", 2, r.jobsCreated())
	})
}

func TestSetsWrittenSinceTheRestoreAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := restoredRig(t, 99)
		r.run(t)
		eventually(t, "its Jobs are created", func() bool { return r.existingJobs(t) == 2 })
	})
}

// TestReleasedJobs: Jobs whose owner reference was removed keep their labels. They are neither adopted nor deleted, and
// a set of the same name says that they are in its way.
func TestReleasedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := newJob("js-w-0", nil)
		released.UID = "uid-released"
		released.Labels[jobsetv1alpha2.JobSetUIDKey] = "uid-of-the-lost-set"
		released.Labels[jobsetv1alpha2.ReplicatedJobNameKey] = "w"
		r := newRig(t, newSet(), released)
		r.run(t)
		eventually(t, "a condition names the Job", func() bool {
			c := meta.FindStatusCondition(r.set(t).Status.Conditions, jobsetv1alpha2.ChildNameConflict)
			return c != nil && c.Status == metav1.ConditionTrue && strings.HasPrefix(c.Message, "a job named js-w-0 already exists and does not belong to the jobset")
		})
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "the owners of the released Job", []metav1.OwnerReference(nil), job.OwnerReferences)
		for _, request := range r.requests() {
			if strings.HasPrefix(request, "delete jobs") || strings.HasPrefix(request, "patch jobs") {
				t.Errorf("the controller sent %q", request)
			}
		}
		eventually(t, "the other Job is there", func() bool {
			other, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-1", metav1.GetOptions{})
			return err == nil && metav1.GetControllerOf(other) != nil
		})
		for _, job := range childrenByKind(t, r.newOrphans())["Job"] {
			if job.Name == "js-w-0" {
				t.Error("the released Job counts as one with an owner")
			}
		}
	})
}
