// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestBusyChildren(t *testing.T) {
	at := ptr.To(metav1.NewTime(time.Unix(1, 0)))
	suspended := func(status corev1.ConditionStatus) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: status}}
	}
	for name, tc := range map[string]struct {
		suspend bool
		status  batchv1.JobStatus
		want    bool
	}{
		"a Job with pods":                          {status: batchv1.JobStatus{Active: 1, StartTime: at}, want: true},
		"a Job whose pods stop":                    {suspend: true, status: batchv1.JobStatus{Terminating: ptr.To[int32](1)}, want: true},
		"a Job that was suspended a moment ago":    {suspend: true, status: batchv1.JobStatus{StartTime: at}, want: true},
		"a Job that is suspended":                  {suspend: true},
		"a Job that is suspended, before 1.36":     {suspend: true, status: batchv1.JobStatus{StartTime: at, Conditions: suspended("True")}},
		"a Job that was suspended again":           {suspend: true, status: batchv1.JobStatus{StartTime: at, Conditions: suspended("False")}, want: true},
		"a Job that has ended":                     {status: batchv1.JobStatus{StartTime: at}},
		"a Job whose pods the API does not report": {status: batchv1.JobStatus{Terminating: ptr.To[int32](0)}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, "busy", tc.want, ChildOfJob(&batchv1.Job{Spec: batchv1.JobSpec{Suspend: &tc.suspend}, Status: tc.status}).Busy)
		})
	}
	set := &jobsetv1alpha2.JobSet{Spec: jobsetv1alpha2.JobSetSpec{Suspend: ptr.To(true)}}
	diff(t, "a JobSet that was suspended a moment ago", true, ChildOfJobSet(set).Busy)
	set.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.JobSetSuspended, Status: metav1.ConditionTrue}}
	diff(t, "a JobSet that is suspended", false, ChildOfJobSet(set).Busy)
	set.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Active: 1}}
	diff(t, "a JobSet with an active Job", true, ChildOfJobSet(set).Busy)
}

func TestEndsOfJobs(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	condition := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: kind, Status: status, Reason: "Because", LastTransitionTime: at}}
	}
	for name, tc := range map[string]struct {
		status batchv1.JobStatus
		want   End
	}{
		"a Job that runs":             {},
		"a Job that is about to fail": {status: batchv1.JobStatus{Conditions: condition(batchv1.JobFailureTarget, "True")}},
		"a Job that has not failed":   {status: batchv1.JobStatus{Conditions: condition(batchv1.JobFailed, "False")}},
		"a Job that has failed":       {status: batchv1.JobStatus{Conditions: condition(batchv1.JobFailed, "True")}, want: Failed},
		"a Job that has completed":    {status: batchv1.JobStatus{Conditions: condition(batchv1.JobComplete, "True")}, want: Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			c := ChildOfJob(&batchv1.Job{Status: tc.status})
			diff(t, "the end", tc.want, c.End)
			if tc.want != "" {
				diff(t, "the time", &at, c.EndTime)
			}
			diff(t, "the reason of a failure", tc.want == Failed, c.Reason == "Because")
		})
	}
}

func TestIndexesOfNames(t *testing.T) {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: "etl"}}
	for name, want := range map[string]int{"etl-0": 0, "etl-12": 12, "etl-": -1, "etl-01": -1, "etl--1": -1, "other-1": -1, "etl": -1, "etl-x": -1} {
		diff(t, name, want, indexOf(sj, name))
	}
}
