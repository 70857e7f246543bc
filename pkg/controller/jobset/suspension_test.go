// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// switchSuspend suspends or resumes the set, as a user does.
func (r *rig) switchSuspend(t *testing.T, suspend bool) {
	t.Helper()
	js := r.set(t)
	js.Spec.Suspend = ptr.To(suspend)
	js.Generation++
	js.ResourceVersion = "" // whatever the controller has written
	if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// onSuspension calls what with the number of each request that suspends a Job, before the request is carried out.
func (r *rig) onSuspension(what func(number int32) error) {
	var suspensions atomic.Int32
	r.kube.PrependReactor("patch", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clientgotesting.PatchAction)
		if !ok || !bytes.Contains(patch.GetPatch(), []byte(`"path":"/spec/suspend","value":true`)) {
			return false, nil, nil
		}
		err := what(suspensions.Add(1))
		return err != nil, nil, err
	})
}

func (r *rig) suspendedJobs(t *testing.T) (n int) {
	t.Helper()
	jobs, err := r.kube.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs.Items {
		if ptr.Deref(job.Spec.Suspend, false) {
			n++
		}
	}
	return n
}

func (r *rig) isSuspended(t *testing.T) bool {
	return meta.IsStatusConditionTrue(r.set(t).Status.Conditions, jobsetv1alpha2.JobSetSuspended)
}

// runTwoJobs starts a controller whose set has two Jobs.
func runTwoJobs(t *testing.T) *rig {
	t.Helper()
	set := newSet()
	set.Generation = 1
	r := newRig(t, set)
	r.run(t)
	eventually(t, "the set runs", func() bool {
		return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") && len(r.set(t).Status.Attempts) == 1
	})
	return r
}

func TestSetIsSuspendedAfterItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runTwoJobs(t)
		var refused, allowed atomic.Bool
		r.onSuspension(func(number int32) error {
			if number > 1 && !allowed.Load() {
				refused.Store(true)
				return errors.New("denied")
			}
			return nil
		})
		r.switchSuspend(t, true)
		eventually(t, "one Job is suspended, and the other one is not", func() bool { return refused.Load() && r.suspendedJobs(t) == 1 })
		diff(t, "whether the set is suspended", false, r.isSuspended(t))
		diff(t, "whether the attempt goes on", true, r.set(t).Status.Attempts[0].EndTime == nil)
		allowed.Store(true)
		eventually(t, "the set is suspended", func() bool { return r.isSuspended(t) })
		diff(t, "suspended Jobs", 2, r.suspendedJobs(t))
		diff(t, "outcome of the attempt", jobsetv1alpha2.OutcomeSuspended, r.set(t).Status.Attempts[0].Outcome)
	})
}

// TestJobThatTheAPIDoesNotKnow has an API that does not know a Job for a moment, which is there. No event says so.
func TestJobThatTheAPIDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runTwoJobs(t)
		var asked atomic.Int32
		r.onSuspension(func(number int32) error {
			if asked.Store(number); number <= 4 {
				return apierrors.NewNotFound(batchv1.Resource("jobs"), "js-w-0")
			}
			return nil
		})
		r.switchSuspend(t, true)
		eventually(t, "the set is suspended", func() bool { return r.isSuspended(t) })
		diff(t, "requests", int32(6), asked.Load())
	})
}

func TestRevertedSuspensionIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runTwoJobs(t)
		r.onSuspension(func(number int32) error {
			if number == 2 {
				r.switchSuspend(t, false)
			}
			return nil
		})
		r.switchSuspend(t, true)
		eventually(t, "the next attempt runs", func() bool {
			return len(r.set(t).Status.Attempts) == 2 && r.suspendedJobs(t) == 0 && !r.isSuspended(t)
		})
		first, second := r.set(t).Status.Attempts[0], r.set(t).Status.Attempts[1]
		diff(t, "attempts", "1 Suspended, 2 Resume", fmt.Sprintf("%d %s, %d %s", first.Number, first.Outcome, second.Number, second.Trigger))
	})
}
