// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// TestQuotaOfPodsThatTheCacheDoesNotShow has a cache of Jobs that has stood still for some time. It shows that the step of a sequence which
// is cancelled is suspended.
func TestQuotaOfPodsThatTheCacheDoesNotShow(t *testing.T) {
	for name, tc := range map[string]struct {
		// happens is what the cache does not show, and unseen means that it does not show the Job at all.
		happens func(job *batchv1.Job)
		unseen  bool
		refused error
		ends    bool
	}{
		"nothing":                         {happens: func(*batchv1.Job) {}, ends: true},
		"the step was resumed":            {happens: func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) }},
		"its pods run":                    {happens: func(job *batchv1.Job) { job.Status.Active = 1 }},
		"its pods terminate":              {happens: func(job *batchv1.Job) { job.Status.Terminating = ptr.To[int32](1) }},
		"another Job has the name":        {happens: func(job *batchv1.Job) { job.UID, job.Spec.Suspend = "uid-other", ptr.To(false) }, ends: true},
		"the step has just begun":         {happens: func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) }, unseen: true},
		"the step begins suspended":       {happens: func(*batchv1.Job) {}, unseen: true, ends: true},
		"it is not known what it is like": {happens: func(*batchv1.Job) {}, refused: apierrors.NewInternalError(errors.New("no"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sj := newSequence(queued, started, func(sj *batchv1alpha1.SequentialJob) {
					sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "Cancelled"}}
				})
				job := jobOf(sj)
				job.Spec.Suspend = ptr.To(true)
				r, _ := newHoldRig(t, sj, job)
				tc.happens(job)
				if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
					t.Fatal(err)
				}
				if tc.unseen {
					if err := r.caches.jobs.GetIndexer().Replace(nil, "0"); err != nil {
						t.Fatal(err)
					}
				}
				if tc.refused != nil {
					refuse(r.kube, "get", "jobs", tc.refused)
				}
				r.written()
				if _, err := r.Sync(t.Context(), key); (err != nil) != (tc.refused != nil) {
					t.Errorf("error %v", err)
				}
				ended := slices.ContainsFunc(r.written(), func(w string) bool { return strings.HasPrefix(w, "patch workloads/status") })
				diff(t, "whether the quota is given back", tc.ends, ended)
			})
		})
	}
}
