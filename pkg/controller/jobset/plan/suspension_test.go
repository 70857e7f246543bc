// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestSetIsSuspendedOnceNoPodRuns(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	two := with("w", 2)
	restarting := withCondition(jobsetv1alpha2.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m")
	for name, tc := range map[string]struct {
		set  []set
		jobs []*batchv1.Job
		want summary
	}{
		"a set is suspended once its last Job is": {
			set: []set{two, with("a", 1), isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended), jobNamed("w", 1, jobIsSuspended), jobNamed("a", 0, succeeded)},
			want: summary{Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
		"a Job that is being deleted starts no more pods": {
			set: []set{two, isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, terminating), jobNamed("w", 1, jobIsSuspended)},
			want: summary{Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
		"pods of a suspended Job run until they have stopped": {
			set: []set{two, isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, podsStop), jobNamed("w", 1, jobIsSuspended)},
			want: summary{},
		},
		"the Job controller has not suspended a Job yet": {
			set: []set{two, isSuspended}, jobs: []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, ready), jobNamed("w", 1, jobIsSuspended)},
			want: summary{},
		},
		"pods of an earlier attempt run until they have stopped": {
			set:  []set{two, isSuspended, restarted(1, 0), failurePolicy(1)},
			jobs: []*batchv1.Job{jobNamed("w", 0, terminating, podsStop), jobNamed("w", 1, attempt("1"), jobIsSuspended)},
			want: summary{Restarts: 1},
		},
		"a Job of an earlier attempt may start pods until it is deleted": {
			set: []set{two, isSuspended, restarted(1, 0), failurePolicy(1)}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, attempt("1"), jobIsSuspended)},
			want: summary{Delete: []string{"js-w-0"}, Restarts: 1},
		},
		"a set that was retried while it was suspended is as any other once it is resumed": {
			set:  []set{two, withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "m"), withCondition(jobsetv1alpha2.Retried, metav1.ConditionTrue, "Retried", "m")},
			jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)},
			want: summary{Conditions: []string{"Suspended=False ResumeJobs", "Retried=False ResumeJobs"}, Events: []string{"Normal ResumeJobs", "Normal ResumeJobs"}},
		},
		"a set whose Jobs are about to be suspended does not end its restart": {
			set: []set{two, isSuspended, restarting}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1, jobIsSuspended)},
			want: summary{Suspend: []string{"js-w-0"}, Conditions: []string{"RestartingJobSet=True DefaultFailurePolicy"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(tc.set...), tc.jobs...)
			diff(t, "plan", tc.want, summarize(o, Decide(o)))
		})
	}
}

// patched returns the Jobs after the patches of a plan.
func patched(jobs []*batchv1.Job, patches []JobPatch) []*batchv1.Job {
	var next []*batchv1.Job
	for _, job := range jobs {
		job = job.DeepCopy()
		for _, patch := range patches {
			if patch.Name == job.Name && patch.Suspend != nil {
				job.Spec.Suspend = patch.Suspend
				job.Annotations = hostplan.Merged(job.Annotations, patch.Annotations)
			}
		}
		next = append(next, job)
	}
	return next
}

// A suspension is taken back before anything of it is stored. First all Jobs were suspended, then one of two.
func TestRevertedSuspensionIsRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		gates  gates.Gates
		// suspended is how many of the two Jobs were suspended.
		suspended int
		// stops means that the pods of a Job are being deleted.
		stops bool
		// wantRecord are the conditions and events with which the end of the attempt is stored.
		wantRecord summary
		wantNext   jobsetv1alpha2.AttemptTrigger
		// wantExecutions is the number of executions in the end; -1 if executions are not counted.
		wantExecutions int32
	}{
		"all Jobs were suspended": {
			suspended: 2, wantNext: jobsetv1alpha2.TriggerResume, wantExecutions: -1,
			wantRecord: summary{Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
		"all Jobs were suspended, and pods stop": {
			suspended: 2, stops: true, wantNext: jobsetv1alpha2.TriggerResume, gates: gates.Gates{JobSetActiveDeadlineSeconds: true}, wantExecutions: -1,
			change: func(js *jobsetv1alpha2.JobSet) { js.Status.StartTime = &before },
		},
		"some Jobs were suspended": {suspended: 1, wantNext: jobsetv1alpha2.TriggerResume, wantExecutions: -1},
		"a queue took it back": {
			suspended: 1, wantNext: jobsetv1alpha2.TriggerPreemption, wantExecutions: -1,
			change: func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "q"} },
		},
		"executions are counted": {
			suspended: 2, wantNext: jobsetv1alpha2.TriggerResume, gates: gates.Gates{ExecutionAttemptsTracking: true}, wantExecutions: 1,
			change:     func(js *jobsetv1alpha2.JobSet) { js.Status.ExecutionAttempts = ptr.To[int32](0) },
			wantRecord: summary{Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
		"the clock runs": {
			suspended: 2, wantNext: jobsetv1alpha2.TriggerResume, gates: gates.Gates{JobSetActiveDeadlineSeconds: true}, wantExecutions: -1,
			change:     func(js *jobsetv1alpha2.JobSet) { js.Status.StartTime = &before },
			wantRecord: summary{Conditions: []string{"Suspended=True SuspendedJobs"}, Events: []string{"Normal SuspendedJobs"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 2), isSuspended, withAttempts(begun(3, jobsetv1alpha2.TriggerStart, created(1))))
			if tc.change != nil {
				tc.change(js)
			}
			js.Generation = 2
			o := observe(js, jobNamed("w", 0, releasedAt("1")), jobNamed("w", 1, releasedAt("1")))
			o.Gates = tc.gates
			o.KeepAttempts = true
			o.Jobs = patched(o.Jobs, Decide(o).PatchJobs[:tc.suspended])
			if tc.stops {
				podsStop(o.Jobs[0])
			}
			js.Spec.Suspend, js.Generation = ptr.To(false), 3

			p := Decide(o)
			diff(t, "decision", tc.wantRecord, summarize(o, p))
			js.Status = *p.Status
			diff(t, "attempts", []jobsetv1alpha2.Attempt{
				begun(3, jobsetv1alpha2.TriggerStart, created(1), ended(attemptNow, jobsetv1alpha2.OutcomeSuspended, messageTakenBack)),
			}, js.Status.Attempts)
			if tc.gates.JobSetActiveDeadlineSeconds {
				diff(t, "start of the clock", (*metav1.Time)(nil), js.Status.StartTime)
			}
			var patches []JobPatch
			for range 3 { // the next one may count the execution first
				p = Decide(o)
				patches = append(patches, p.PatchJobs...)
				o.Jobs = patched(o.Jobs, p.PatchJobs)
				if p.Status != nil {
					js.Status = *p.Status
				}
			}
			diff(t, "Jobs that are resumed", tc.suspended, len(patches))
			diff(t, "number and trigger of the next attempt", fmt.Sprint(4, tc.wantNext), fmt.Sprint(js.Status.Attempts[1].Number, js.Status.Attempts[1].Trigger))
			diff(t, "attempts in the end", 2, len(js.Status.Attempts))
			diff(t, "executions", tc.wantExecutions, ptr.Deref(js.Status.ExecutionAttempts, -1))
			if c := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended); c != nil && c.Status != metav1.ConditionFalse {
				t.Errorf("in the end the set is suspended: %+v", c)
			}
		})
	}
}

// What was suspended in an earlier attempt, and waits for others, is no reason to end the present one.
func TestJobsOfAnEarlierSuspensionDoNotEndTheAttempt(t *testing.T) {
	js := newSet(with("a", 1), with("b", 1, dependsOn("a", jobsetv1alpha2.DependencyReady)), withAttempts(
		begun(3, jobsetv1alpha2.TriggerStart, ended(at(5), jobsetv1alpha2.OutcomeSuspended, "")), begun(4, jobsetv1alpha2.TriggerResume, created(6))))
	o := observe(js, jobNamed("a", 0), jobNamed("b", 0, jobIsSuspended, releasedAt("suspended-in-attempt-3")))
	o.KeepAttempts = true
	diff(t, "decision", summary{}, summarize(o, Decide(o)))
}

// While Jobs of a suspended set still run, its conditions are about the time before. That alone is no reason to write.
func TestConditionsGetTheCurrentGeneration(t *testing.T) {
	js := newSet(with("w", 1), isSuspended, withCondition(jobsetv1alpha2.JobSetSuspended, metav1.ConditionFalse, "ResumeJobs", "jobset is resumed"))
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}
	js.Generation, js.Status.Conditions[0].ObservedGeneration = 4, 3
	o := observe(js, jobNamed("w", 0))
	p := Decide(o)
	diff(t, "status while the Job runs", (*jobsetv1alpha2.JobSetStatus)(nil), p.Status)
	o.Jobs = patched(o.Jobs, p.PatchJobs)
	c := meta.FindStatusCondition(Decide(o).Status.Conditions, jobsetv1alpha2.JobSetSuspended)
	diff(t, "condition once it is suspended", "True 4", fmt.Sprint(c.Status, " ", c.ObservedGeneration))
}
