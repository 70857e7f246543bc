// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func condition(of string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)})
	}
}

func counted(name string, status jobsetv1alpha2.ReplicatedJobStatus) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		status.Name = name
		js.Status.ReplicatedJobsStatus = append(js.Status.ReplicatedJobsStatus, status)
	}
}

func TestJobState(t *testing.T) {
	s := &snapshot.Set{JobSet: builders.JobSet("a", builders.WithJobs("w", 2, 2), counted("w", jobsetv1alpha2.ReplicatedJobStatus{JobRestarts: []int32{0, 2}}), func(js *jobsetv1alpha2.JobSet) { js.Status.Restarts = 1 })}
	job := func(index, restarts, jobRestarts string, change ...func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(2)), Completions: ptr.To(int32(2))}}
		j.Labels = map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: "w", jobsetv1alpha2.JobIndexKey: index, jobsetv1alpha2.RestartsKey: restarts, jobsetv1alpha2.JobRestartAttemptKey: jobRestarts}
		for _, f := range change {
			f(j)
		}
		return j
	}
	status := func(active, ready, succeeded int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Status.Active, j.Status.Ready, j.Status.Succeeded = active, &ready, succeeded }
	}
	is := func(of batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: of, Status: corev1.ConditionTrue})
		}
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"no pods":                                    {job: job("0", "1", "0"), want: snapshot.JobPending},
		"pods that are not ready":                    {job: job("0", "1", "0", status(2, 1, 0)), want: snapshot.JobStarting},
		"a pod is ready and one has succeeded":       {job: job("0", "1", "0", status(1, 1, 1)), want: snapshot.JobReady},
		"suspended":                                  {job: job("0", "1", "0", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), want: snapshot.JobSuspended},
		"complete":                                   {job: job("0", "1", "0", status(0, 0, 2), is(batchv1.JobComplete)), want: snapshot.JobComplete},
		"failed":                                     {job: job("0", "1", "0", is(batchv1.JobFailed)), want: snapshot.JobFailed},
		"bound to fail":                              {job: job("0", "1", "0", status(1, 1, 0), is(batchv1.JobFailureTarget)), want: snapshot.JobFailed},
		"of before the set was restarted":            {job: job("0", "0", "0", status(2, 2, 0)), want: snapshot.JobOutdated},
		"of before the Job was restarted":            {job: job("1", "1", "1", status(2, 2, 0)), want: snapshot.JobOutdated},
		"of after the Job was restarted":             {job: job("1", "1", "2", status(2, 2, 0)), want: snapshot.JobReady},
		"an outdated Job that is deleted terminates": {job: job("0", "0", "0", func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }), want: snapshot.JobTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.JobState(tc.job)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingFor(t *testing.T) {
	on := func(name string, status jobsetv1alpha2.DependsOnStatus) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) {
			rj.DependsOn = append(rj.DependsOn, jobsetv1alpha2.DependsOn{Name: name, Status: status})
		}
	}
	inOrder := func(js *jobsetv1alpha2.JobSet) {
		js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.InOrder}
	}
	two, one := builders.WithJobs("a", 2, 1), builders.WithJobs("b", 1, 1)
	for name, tc := range map[string]struct {
		js   *jobsetv1alpha2.JobSet
		want []string
	}{
		"nothing is asked for": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1))},
		"one of two is ready": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1, on("a", jobsetv1alpha2.DependencyReady)), counted("a", jobsetv1alpha2.ReplicatedJobStatus{Ready: 1})),
			want: []string{"waits until a is ready, 1 of 2 (dependsOn)"}},
		"a failed Job has started": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1, on("a", jobsetv1alpha2.DependencyReady)), counted("a", jobsetv1alpha2.ReplicatedJobStatus{Ready: 1, Failed: 1}))},
		"a failed Job is not complete": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1, on("a", jobsetv1alpha2.DependencyComplete)), counted("a", jobsetv1alpha2.ReplicatedJobStatus{Succeeded: 1, Failed: 1})),
			want: []string{"waits until a is complete, 1 of 2 (dependsOn)"}},
		"the first in an order holds back the third": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1), inOrder),
			want: []string{"waits until a is ready, 0 of 2 (InOrder start)"}},
		"the second in an order holds back the third": {js: builders.JobSet("x", two, one, builders.WithJobs("c", 1, 1), inOrder, counted("a", jobsetv1alpha2.ReplicatedJobStatus{Ready: 2})),
			want: []string{"waits until b is ready, 0 of 1 (InOrder start)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range snapshot.WaitingFor(tc.js, 2) {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("waiting for (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLacksAttempts(t *testing.T) {
	two := builders.WithJobs("w", 2, 1)
	for name, tc := range map[string]struct {
		js   *jobsetv1alpha2.JobSet
		want bool
	}{
		"a set that has not begun":        {js: builders.JobSet("a", two), want: false},
		"a set with attempts":             {js: builders.JobSet("a", two, condition(jobsetv1alpha2.JobSetFailed), func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1}} }), want: false},
		"a set that runs without any":     {js: builders.JobSet("a", two, counted("w", jobsetv1alpha2.ReplicatedJobStatus{Active: 1})), want: true},
		"a set that finished without any": {js: builders.JobSet("a", two, condition(jobsetv1alpha2.JobSetFailed)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := snapshot.LacksAttempts(tc.js); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
