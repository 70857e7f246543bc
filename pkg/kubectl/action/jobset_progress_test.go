// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strconv"
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

const uid = "set-1"

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) *metav1.MicroTime {
	return &metav1.MicroTime{Time: start.Add(time.Duration(seconds) * time.Second)}
}

// set returns a set of three Jobs with the changes.
func set(changes ...func(*snapshot.Set)) view {
	js := builders.JobSet("train", builders.WithJobs("w", 3, 2))
	js.UID = uid
	s := &snapshot.Set{JobSet: js, Now: start}
	for _, change := range changes {
		change(s)
	}
	return view{Set: s}
}

func status(change func(*jobsetv1alpha2.JobSetStatus)) func(*snapshot.Set) {
	return func(s *snapshot.Set) { change(&s.JobSet.Status) }
}

func attempts(list ...jobsetv1alpha2.Attempt) func(*snapshot.Set) {
	return status(func(st *jobsetv1alpha2.JobSetStatus) { st.Attempts = list })
}

func isTrue(conditionType, reason, message string) func(*snapshot.Set) {
	return status(func(st *jobsetv1alpha2.JobSetStatus) {
		st.Conditions = append(st.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	})
}

func restarts(n int32) func(*snapshot.Set) {
	return status(func(st *jobsetv1alpha2.JobSetStatus) { st.Restarts = n })
}

func suspendedSet(s *snapshot.Set) { s.JobSet.Spec.Suspend = ptr.To(true) }

// job adds the next Job, created in the attempt that follows on so many restarts.
func job(restarts int, changes ...func(*batchv1.Job)) func(*snapshot.Set) {
	return func(s *snapshot.Set) {
		index := len(s.Jobs)
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("train-w-%d", index), Labels: map[string]string{
			jobsetv1alpha2.RestartsKey: strconv.Itoa(restarts), jobsetv1alpha2.ReplicatedJobNameKey: "w", jobsetv1alpha2.JobIndexKey: strconv.Itoa(index),
		}}}
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
		for _, change := range changes {
			change(j)
		}
		s.Jobs = append(s.Jobs, j)
	}
}

func pods(active, ready int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = active, &ready }
}

func completed(j *batchv1.Job) {
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
}

func terminating(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: start} }

func suspendedJob(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func blind(v view) view {
	v.Jobs, v.blind = nil, true
	return v
}

func TestProgressToReady(t *testing.T) {
	running := jobsetv1alpha2.Attempt{Number: 2, Trigger: jobsetv1alpha2.TriggerRequested, RequestTime: at(0)}
	isReady := running
	isReady.ReadyTime = at(14)
	oom := &jobsetv1alpha2.FailureCause{
		Job: "train-w-1", Pod: "train-w-1-0-abcde", Node: "node-7", Container: "main", ExitCode: ptr.To[int32](137), Reason: "OOMKilled", Message: "out of memory\nat line 3",
	}
	ended := isReady
	ended.EndTime, ended.Outcome, ended.FirstCause = at(20), jobsetv1alpha2.OutcomeRestarted, oom
	third := jobsetv1alpha2.Attempt{Number: 3, Trigger: jobsetv1alpha2.TriggerFailurePolicy}
	counted := status(func(st *jobsetv1alpha2.JobSetStatus) {
		st.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 1, Succeeded: 1, Active: 1}}
	})

	for name, tc := range map[string]struct {
		set  view
		want Progress
	}{
		"Jobs of the attempt before are deleted first": {
			set:  set(restarts(1), attempts(running), job(0, pods(2, 2)), job(0, terminating), job(1, pods(2, 1))),
			want: Progress{Text: "2 old Jobs to be deleted, 1 of 3 created, 0 of 3 ready"},
		},
		"Jobs are ready one after the other": {
			set:  set(restarts(1), attempts(running), job(1, pods(2, 2)), job(1, completed), job(1)),
			want: Progress{Text: "3 of 3 created, 2 of 3 ready"},
		},
		"all Jobs are ready but the controller has not said so yet": {
			set:  set(restarts(1), attempts(running), job(1, pods(2, 2)), job(1, pods(2, 2)), job(1, pods(2, 2))),
			want: Progress{Text: "3 of 3 created, 3 of 3 ready"},
		},
		"the attempt is ready": {
			set:  set(restarts(1), attempts(isReady), job(1, pods(2, 2))),
			want: Progress{Reached: true, Text: "3 of 3 Jobs ready in attempt 2 after 14s"},
		},
		"the attempt that was waited for has failed, and another one runs": {
			set:  set(restarts(2), attempts(ended, third), job(2)),
			want: Progress{Text: "attempt 3 after attempt 2 ended: pod train-w-1-0-abcde on node node-7: OOMKilled, container main exit code 137 (out of memory), 1 of 3 created, 0 of 3 ready"},
		},
		"an earlier attempt that was ready does not count": {
			set:  set(attempts(jobsetv1alpha2.Attempt{Number: 1, ReadyTime: at(1)}), job(0)),
			want: Progress{Text: "1 of 3 created, 0 of 3 ready"},
		},
		"the set completed": {
			set:  set(isTrue(jobsetv1alpha2.JobSetCompleted, "AllJobsCompleted", "")),
			want: Progress{Reached: true, Text: "completed"},
		},
		"the set failed": {
			set:  set(attempts(ended), isTrue(jobsetv1alpha2.JobSetFailed, "ReachedMaxRestarts", "too many")),
			want: Progress{Failure: "Failed (ReachedMaxRestarts): too many; first cause: pod train-w-1-0-abcde on node node-7: OOMKilled, container main exit code 137 (out of memory)"},
		},
		"the set was suspended meanwhile": {
			set:  set(suspendedSet, attempts(jobsetv1alpha2.Attempt{Number: 2, EndTime: at(3), EndUser: "alice"})),
			want: Progress{Failure: "the set is suspended by alice; run `kubectl jobset resume train` to resume it"},
		},
		"the queue of the set took its quota back meanwhile": {
			set: set(suspendedSet, attempts(jobsetv1alpha2.Attempt{Number: 2, EndTime: at(3)}), func(s *snapshot.Set) {
				s.JobSet.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "research"}
			}),
			want: Progress{Failure: "the set is suspended; its queue research resumes it"},
		},
		"the set was created again": {
			set:  set(func(s *snapshot.Set) { s.JobSet.UID = "set-2" }),
			want: Progress{Failure: "the set was deleted, and another one created under its name"},
		},
		"a set without a history is ready when its Jobs are": {
			set:  set(job(0, pods(2, 2)), job(0, pods(2, 2)), job(0, completed)),
			want: Progress{Reached: true, Text: "3 of 3 Jobs ready"},
		},
		"without permission to read Jobs the status is used": {
			set:  blind(set(attempts(running), counted)),
			want: Progress{Text: "2 of 3 ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, look(GoalReady, tc.set, uid, 2)); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgressToSuspendedAndStopped(t *testing.T) {
	counted := status(func(st *jobsetv1alpha2.JobSetStatus) {
		st.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Active: 2, Suspended: 1}}
	})
	for name, tc := range map[string]struct {
		goal Goal
		set  view
		want Progress
	}{
		"a Job has pods that terminate": {
			goal: GoalSuspended,
			set: set(suspendedSet, isTrue(jobsetv1alpha2.JobSetSuspended, "", ""), job(0, suspendedJob), job(0, suspendedJob),
				job(0, suspendedJob, func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](1) })),
			want: Progress{Text: "2 of 3 Jobs stopped"},
		},
		"no pod is left but the controller has not said so yet": {
			goal: GoalSuspended,
			set:  set(suspendedSet, job(0, suspendedJob), job(0, suspendedJob), job(0, suspendedJob)),
			want: Progress{Text: "3 of 3 Jobs stopped"},
		},
		"suspended": {
			goal: GoalSuspended,
			set:  set(suspendedSet, isTrue(jobsetv1alpha2.JobSetSuspended, "", ""), job(0, suspendedJob)),
			want: Progress{Reached: true, Text: "suspended, no pod is left"},
		},
		"resumed before it was suspended": {
			goal: GoalSuspended,
			set:  set(attempts(jobsetv1alpha2.Attempt{Number: 3, User: "bob"})),
			want: Progress{Failure: "the set was resumed in the meantime by bob"},
		},
		"completed before it was suspended": {
			goal: GoalSuspended,
			set:  set(isTrue(jobsetv1alpha2.JobSetCompleted, "AllJobsCompleted", "done")),
			want: Progress{Failure: "the set finished in the meantime: Completed (AllJobsCompleted): done"},
		},
		"suspending without the right to read Jobs": {
			goal: GoalSuspended,
			set:  blind(set(suspendedSet, counted)),
			want: Progress{Text: "1 of 3 Jobs stopped"},
		},
		"a Job without pods is deleted too": {
			goal: GoalStopped,
			set:  set(job(0), job(0, terminating), job(0, completed)),
			want: Progress{Text: "1 Job to be deleted, 1 being deleted"},
		},
		"finished Jobs stay": {
			goal: GoalStopped,
			set:  set(job(0, completed)),
			want: Progress{Reached: true, Text: "no Job is running"},
		},
		"stopping without the right to read Jobs": {
			goal: GoalStopped,
			set:  blind(set(counted)),
			want: Progress{Text: "2 Jobs to be deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, look(tc.goal, tc.set, uid, 2)); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCauses(t *testing.T) {
	for name, tc := range map[string]struct {
		cause jobsetv1alpha2.FailureCause
		want  string
	}{
		"only the Job is known":    {cause: jobsetv1alpha2.FailureCause{Job: "train-w-1", Reason: "DeadlineExceeded"}, want: "Job train-w-1: DeadlineExceeded"},
		"a signal ended it":        {cause: jobsetv1alpha2.FailureCause{Job: "j", Pod: "p", Node: "n", Container: "c", ExitCode: ptr.To[int32](139), Signal: ptr.To[int32](11)}, want: "pod p on node n, container c ended by signal 11"},
		"the container exited":     {cause: jobsetv1alpha2.FailureCause{Job: "j", Pod: "p", Container: "c", ExitCode: ptr.To[int32](3), Reason: "Error"}, want: "pod p: Error, container c exit code 3"},
		"the pod was not to blame": {cause: jobsetv1alpha2.FailureCause{Job: "j", Pod: "p", Node: "n", Reason: "Evicted", Message: "disk full"}, want: "pod p on node n: Evicted (disk full)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cause(&tc.cause); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
