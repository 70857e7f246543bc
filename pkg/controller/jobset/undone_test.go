// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// minutes lets five minutes pass, in which others undo what the controller does, and returns how often they found something to undo.
func (r *rig) minutes(undo func() error) (undone int) {
	for range 5 * 60 * 10 {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if undo() == nil {
			undone++
		}
	}
	return undone
}

// made returns how often a request was made.
func (r *rig) made(request string) (n int) {
	for _, made := range r.requests() {
		if made == request {
			n++
		}
	}
	return n
}

// untilTime returns a message without the time at its end.
func untilTime(message string) string {
	return message[:strings.LastIndex(message, " at ")+len(" at ")]
}

// deletes deletes a Job. It is an error if the Job does not exist.
func (r *rig) deletes(t *testing.T, name string) error {
	t.Helper()
	return r.kube.BatchV1().Jobs("ns").Delete(t.Context(), name, metav1.DeleteOptions{})
}

// TestJobsDeletedByOthers deletes one Job whenever it exists. The other Job is not affected.
func TestJobsDeletedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		r.run(t)
		diff(t, "how often the Job is created in five minutes", 6, r.minutes(func() error { return r.deletes(t, "js-w-0") }))
		const message = "1 of 2 Jobs could not be created: job js-w-0 was deleted 3 times within a minute, each time after the controller had created it; " +
			"the API does not say who deletes it, the audit log does; the controller creates it again at "
		diff(t, "the condition", "UndoneByOthers: "+message, untilTime(r.creationFailure(t)))
		if at, err := time.Parse(time.RFC3339, strings.TrimPrefix(r.creationFailure(t), "UndoneByOthers: "+message)); err != nil || at.Before(time.Now()) {
			t.Errorf("the condition says %s at %s, %v", at, time.Now(), err)
		}
		diff(t, "whether the other Job exists", true, r.jobExists(t, "js-w-1"))
		diff(t, "whether it is reported", true, slices.ContainsFunc(r.events.all(), func(event string) bool {
			return strings.HasPrefix(event, "Warning JobCreationFailed Reconciling: ") && strings.Contains(event, "job js-w-0 was deleted 3 times within a minute")
		}))

		time.Sleep(5 * time.Minute) // the other party has given up
		synctest.Wait()
		diff(t, "whether the Job exists afterwards", true, r.jobExists(t, "js-w-0"))
		diff(t, "whether the condition is true", false, meta.IsStatusConditionTrue(r.set(t).Status.Conditions, jobsetv1alpha2.JobCreationFailure))
	})
}

// TestRestartsAreNoReversals restarts a set again and again, and deletes finished Jobs that have a time to live.
func TestRestartsAreNoReversals(t *testing.T) {
	t.Run("restarts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			set := newSet()
			r := newRig(t, set)
			r.run(t)
			for n := range int32(20) {
				time.Sleep(time.Second)
				synctest.Wait()
				js := r.set(t)
				js.Status.Restarts = n + 1
				if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			diff(t, "whether the Job of the last attempt exists", true, r.jobExists(t, "js-w-0"))
		})
	})
	t.Run("time to live", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			set := newSet()
			set.Spec.ReplicatedJobs[0].Template.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
			r := newRig(t, set)
			r.run(t)
			for range 20 {
				time.Sleep(time.Second)
				synctest.Wait()
				_ = r.deletes(t, "js-w-0")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			diff(t, "whether the Job exists", true, r.jobExists(t, "js-w-0"))
		})
	})
}

// TestServiceDeletedByOthers deletes the Service whenever it exists.
func TestServiceDeletedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		r.run(t)
		diff(t, "how often the Service is created in five minutes", 6, r.minutes(func() error {
			return r.kube.CoreV1().Services("ns").Delete(t.Context(), "js", metav1.DeleteOptions{})
		}))
		if c := r.creationFailure(t); !strings.HasPrefix(c, "UndoneByOthers: the Service js could not be created: service js was deleted 3 times within a minute") {
			t.Errorf("the condition: %s", c)
		}
	})
}

// TestJobLabelsRemovedByOthers removes the labels of a Job whenever it has them. No cache shows it then, so that each
// pass wants to create it.
func TestJobLabelsRemovedByOthers(t *testing.T) {
	set := newSet()
	wanted := plan.Decide(plan.Observed{JobSet: set}).CreateJobs[:1]
	job := wanted[0].DeepCopy()
	job.UID, job.ResourceVersion = "uid-job", "5"
	r, now := newRig(t, set, job), clocktesting.NewFakePassiveClock(time.Now())
	r.clock = now
	r.build(t, gates.Gates{})
	var out plan.Outcome
	for range 5 * 60 {
		now.SetTime(now.Now().Add(time.Second))
		job.Labels = nil
		if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job.DeepCopy(), "ns"); err != nil {
			t.Fatal(err)
		}
		out, _ = r.carryOut(t.Context(), &plan.Observed{JobSet: r.set(t), Now: metav1.NewTime(now.Now())}, plan.Plan{CreateJobs: wanted})
	}
	diff(t, "how often the labels are put back in five minutes", 5, r.made("patch jobs js-w-0"))
	c := meta.FindStatusCondition(r.set(t).Status.Conditions, jobsetv1alpha2.JobCreationFailure)
	if c == nil || c.Reason != "UndoneByOthers" || !strings.Contains(c.Message, "another party removed or changed the label ") || !strings.Contains(c.Message, "of job js-w-0") {
		t.Errorf("the condition: %+v", c)
	}
	diff(t, "whether a later pass writes the status", true, out.Status == nil)
}
