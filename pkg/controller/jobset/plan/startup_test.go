// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestOrderedStart(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	const (
		readyState = jobsetv1alpha2.DependencyReady
		complete   = jobsetv1alpha2.DependencyComplete
	)
	inProgress := withCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, metav1.ConditionTrue,
		"InOrderStartupPolicyInProgress", "in order startup policy is in progress")
	startupCompleted := withCondition(jobsetv1alpha2.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
		"InOrderStartupPolicyCompleted", "in order startup policy has completed")
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		want summary
	}{
		"InOrder creates the first replicatedJob only": {
			set: []set{inOrder, with("a", 1), with("b", 2)},
			want: summary{
				Create: []string{"js-a-0"}, Conditions: []string{"StartupPolicyInProgress=True InOrderStartupPolicyInProgress"},
				Events: []string{"Normal InOrderStartupPolicyInProgress"},
			},
		},
		"InOrder waits while Jobs are active but not ready": {
			set: []set{inOrder, with("a", 1), with("b", 2), inProgress}, jobs: []*batchv1.Job{jobNamed("a", 0)},
			want: summary{Conditions: []string{"StartupPolicyInProgress=True InOrderStartupPolicyInProgress"}},
		},
		"InOrder goes on when the Jobs are ready": {
			set: []set{inOrder, with("a", 1), with("b", 2), inProgress}, jobs: []*batchv1.Job{jobNamed("a", 0, ready)},
			want: summary{Create: []string{"js-b-0", "js-b-1"}, Conditions: []string{"StartupPolicyInProgress=True InOrderStartupPolicyInProgress"}},
		},
		"InOrder passes over replicatedJobs without Jobs": {
			set:  []set{inOrder, with("none", 0), with("b", 1), inProgress},
			want: summary{Create: []string{"js-b-0"}, Conditions: []string{"StartupPolicyInProgress=True InOrderStartupPolicyInProgress"}},
		},
		"InOrder ends when all are ready, and the other condition says why": {
			set: []set{inOrder, with("a", 1), with("b", 1), inProgress}, jobs: []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("b", 0, ready)},
			want: summary{
				Conditions: []string{"StartupPolicyInProgress=False InOrderStartupPolicyCompleted", "StartupPolicyCompleted=True InOrderStartupPolicyCompleted"},
				Events:     []string{"Normal InOrderStartupPolicyCompleted"},
			},
		},
		"InOrder begins anew after a restart": {
			set: []set{inOrder, with("a", 1), with("b", 1), failurePolicy(1), restarted(1, 1), startupCompleted},
			want: summary{
				Restarts: 1, Counted: 1, Create: []string{"js-a-0"},
				Conditions: []string{"StartupPolicyCompleted=False InOrderStartupPolicyInProgress", "StartupPolicyInProgress=True InOrderStartupPolicyInProgress"},
				Events:     []string{"Normal InOrderStartupPolicyInProgress"},
			},
		},
		"InOrder creates all while suspended and says nothing": {
			set: []set{inOrder, isSuspended, with("a", 1), with("b", 1)},
			want: summary{
				Create: []string{"js-a-0", "js-b-0"}, Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"},
			},
		},
		"InOrder resumes in order, and the set counts as suspended until all have started": {
			set:  []set{inOrder, with("a", 1), with("b", 1), withCondition("Suspended", metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")},
			jobs: []*batchv1.Job{jobNamed("a", 0, jobIsSuspended), jobNamed("b", 0, jobIsSuspended)},
			want: summary{
				Resume:     []string{"js-a-0"},
				Conditions: []string{"Suspended=True SuspendedJobs", "StartupPolicyInProgress=True InOrderStartupPolicyInProgress"},
				Events:     []string{"Normal InOrderStartupPolicyInProgress"},
			},
		},
		"InOrder resumes the next when the first is ready": {
			set:  []set{inOrder, with("a", 1), with("b", 1), inProgress, withCondition("Suspended", metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")},
			jobs: []*batchv1.Job{jobNamed("a", 0, ready), jobNamed("b", 0, jobIsSuspended)},
			want: summary{
				Resume:     []string{"js-b-0"},
				Conditions: []string{"StartupPolicyInProgress=True InOrderStartupPolicyInProgress", "Suspended=True SuspendedJobs"},
			},
		},
		"a dependency on Ready holds back until the pods are ready": {
			set: []set{with("a", 2), with("b", 1, dependsOn("a", readyState))}, jobs: []*batchv1.Job{jobNamed("a", 0, ready), jobNamed("a", 1)},
		},
		"a dependency on Ready is met by ready, succeeded and failed Jobs": {
			set:  []set{with("a", 2), with("b", 1, dependsOn("a", readyState))},
			jobs: []*batchv1.Job{jobNamed("a", 0, ready), jobNamed("a", 1, succeeded)},
			want: summary{Create: []string{"js-b-0"}},
		},
		"a dependency on Complete is not met by ready Jobs": {
			set: []set{with("a", 2), with("b", 1, dependsOn("a", complete))}, jobs: []*batchv1.Job{jobNamed("a", 0, ready), jobNamed("a", 1, succeeded)},
		},
		"a dependency on Complete is met by success of all": {
			set:  []set{with("a", 2), with("b", 1, dependsOn("a", complete))},
			jobs: []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("a", 1, succeeded)},
			want: summary{Create: []string{"js-b-0"}},
		},
		"all dependencies must be met": {
			set:  []set{with("a", 1), with("b", 1), with("c", 1, dependsOn("a", complete), dependsOn("b", readyState))},
			jobs: []*batchv1.Job{jobNamed("a", 0, succeeded), jobNamed("b", 0)},
		},
		"a replicatedJob that waits does not hold back later ones": {
			set: []set{with("a", 1), with("b", 1, dependsOn("a", complete)), with("c", 1)}, jobs: []*batchv1.Job{jobNamed("a", 0)},
			want: summary{Create: []string{"js-c-0"}},
		},
		"a suspended set creates only what depends on nothing": {
			set:  []set{isSuspended, with("a", 1), with("b", 1, dependsOn("a", readyState))},
			want: summary{Create: []string{"js-a-0"}, Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
		"a Job whose dependency is not met stays suspended, and the set counts as resumed": {
			set:  []set{with("a", 1), with("b", 1, dependsOn("a", readyState)), withCondition("Suspended", metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended")},
			jobs: []*batchv1.Job{jobNamed("a", 0), jobNamed("b", 0, jobIsSuspended)},
			want: summary{Conditions: []string{"Suspended=False ResumeJobs"}, Events: []string{"Normal ResumeJobs"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(tc.set...), tc.jobs...)
			diff(t, "plan", tc.want, summarize(o, Decide(o)))
		})
	}
}

func TestStartupConditionHasTheTransitionTime(t *testing.T) {
	o := observe(newSet(inOrder, with("a", 1), withCondition(jobsetv1alpha2.JobSetStartupPolicyInProgress, metav1.ConditionTrue, "R", "m")), jobNamed("a", 0, ready))
	for _, c := range Decide(o).Status.Conditions {
		diff(t, "time of "+c.Type, now, c.LastTransitionTime)
	}
}
