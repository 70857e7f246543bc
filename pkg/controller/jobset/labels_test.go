// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestLostLabelsAreRestored takes labels from a Job of the first attempt of a set that is in its second one. The Job must
// not become one of the second attempt.
func TestLostLabelsAreRestored(t *testing.T) {
	set := newSet()
	created := plan.Decide(plan.Observed{JobSet: set}).CreateJobs
	restarted := newSet()
	restarted.Status.Restarts = 1
	wanted := plan.Decide(plan.Observed{JobSet: restarted, Restored: hostplan.None[plan.Restored]()}).CreateJobs
	const restored = `Warning JobLabelsRestored Reconciling: labels that identify job "js-w-0" as part of the jobset were removed or changed; they have been restored`
	const lost = `job "js-w-0" creation failed with error: jobs.batch "js-w-0" already exists, ` +
		`without the label jobset.sigs.k8s.io/jobset-name on itself and on its pods`
	for name, tc := range map[string]struct {
		change     func(job *batchv1.Job)
		wantEvents []string
		wantError  string
	}{
		"the label of the set": {
			change:     func(job *batchv1.Job) { delete(job.Labels, jobsetv1alpha2.JobSetNameKey) },
			wantEvents: []string{restored},
		},
		"all labels": {
			change:     func(job *batchv1.Job) { job.Labels = nil },
			wantEvents: []string{restored},
		},
		"the label of the set, and others are changed": {
			change: func(job *batchv1.Job) {
				job.Labels = map[string]string{jobsetv1alpha2.RestartsKey: "7", jobsetv1alpha2.JobIndexKey: "1"}
			},
			wantEvents: []string{restored},
		},
		"those of the pods too": {
			change:     func(job *batchv1.Job) { job.Labels, job.Spec.Template.Labels = nil, nil },
			wantEvents: []string{"Warning JobCreationFailed Reconciling: " + lost},
			wantError:  lost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := created[0].DeepCopy()
			job.UID, job.ResourceVersion = "uid-job", "5"
			want := maps.Clone(job.Labels)
			tc.change(job)
			r := newRig(t, restarted, job)
			diff(t, "error", tc.wantError, errorText(r.apply(t, restarted, plan.Plan{CreateJobs: wanted})))
			diff(t, "events", tc.wantEvents, r.events.all())
			if !r.jobExists(t, "js-w-1") {
				t.Error("the other Job is not created")
			}
			got, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantError == "" {
				diff(t, "labels", want, got.Labels)
			}
		})
	}
}

// A Job without the label of its set is in no cache, so nothing but another look shows that its name is free.
func TestJobDeletedDuringLabelRestoreIsRequeued(t *testing.T) {
	set := newSet()
	created := plan.Decide(plan.Observed{JobSet: set}).CreateJobs
	job := created[0].DeepCopy()
	job.UID, job.ResourceVersion, job.Labels = "uid-job", "5", nil
	r := newRig(t, set, job)
	r.refuse("patch", "jobs", "js-w-0", apierrors.NewNotFound(jobsResource, "js-w-0"))
	got, err := r.carryOut(t.Context(), &plan.Observed{JobSet: set}, plan.Plan{CreateJobs: created})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "time to look again", time.Second, got.RequeueAfter)
}
