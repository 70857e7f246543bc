// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/timeline"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/top"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/tree"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// seen is what a view shows of the state of a set.
type seen struct {
	State, Reason string
	Ready, Wanted int
	Attempt       int
}

// walked is a set in a state, with its Jobs and pods that exist.
type walked struct {
	change []func(*jobsetv1alpha2.JobSet)
	// jobs are the states of the two Jobs: "" for one that does not exist, else a condition, or suspended, pending, starting or ready.
	jobs [2]string
	want seen
}

func counts(c jobsetv1alpha2.ReplicatedJobStatus) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		c.Name = "w"
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{c}
	}
}

func holds(kind, reason string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
		})
		if kind == jobsetv1alpha2.JobSetFailed || kind == jobsetv1alpha2.JobSetCompleted {
			js.Status.TerminalState = kind
		}
	}
}

// attempts have run one after the other; the last one goes on, unless it has an outcome.
func attempts(n int, outcome jobsetv1alpha2.AttemptOutcome) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		for i := 1; i <= n; i++ {
			a := jobsetv1alpha2.Attempt{Number: int32(i), Trigger: jobsetv1alpha2.TriggerStart, RequestTime: ptr.To(metav1.NewMicroTime(now.Add(-time.Hour)))}
			if i < n || outcome != "" {
				a.EndTime, a.Outcome = ptr.To(metav1.NewMicroTime(now.Add(-time.Minute))), jobsetv1alpha2.OutcomeRestarted
			}
			if i == n && outcome != "" {
				a.Outcome = outcome
			}
			js.Status.Attempts = append(js.Status.Attempts, a)
		}
	}
}

func inQueue(js *jobsetv1alpha2.JobSet) {
	js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "gpu"}
}

func isSuspended(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }

func isDeleted(finalizers ...string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.DeletionTimestamp, js.Finalizers = ptr.To(metav1.NewTime(now.Add(-time.Minute))), finalizers
	}
}

type jobCounts = jobsetv1alpha2.ReplicatedJobStatus
type changes = []func(*jobsetv1alpha2.JobSet)

// walk takes a set of two Jobs through its states.
var walk = map[string]walked{
	"created":                        {want: seen{"Pending", "JobsNotReady", 0, 2, 1}},
	"left to another controller":     {change: changes{func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }}, want: seen{"Pending", "ManagedByOther", 0, 2, 1}},
	"queued by label":                {change: changes{inQueue, isSuspended, counts(jobCounts{Suspended: 2}), holds("Suspended", "SuspendedJobs")}, jobs: [2]string{"suspended", "suspended"}, want: seen{"Suspended", "Queued", 0, 2, 1}},
	"preempted":                      {change: changes{inQueue, isSuspended, attempts(2, jobsetv1alpha2.OutcomeSuspended), counts(jobCounts{Suspended: 2}), holds("Suspended", "SuspendedJobs")}, jobs: [2]string{"suspended", "suspended"}, want: seen{"Suspended", "Queued", 0, 2, 2}},
	"suspended, not observed yet":    {change: changes{isSuspended, counts(jobCounts{Active: 2, Ready: 2}), attempts(1, "")}, jobs: [2]string{"ready", "ready"}, want: seen{"Suspended", "SuspendRequested", 2, 2, 1}},
	"suspended":                      {change: changes{isSuspended, counts(jobCounts{Suspended: 2}), attempts(1, jobsetv1alpha2.OutcomeSuspended), holds("Suspended", "SuspendedJobs")}, jobs: [2]string{"suspended", "suspended"}, want: seen{"Suspended", "SuspendedJobs", 0, 2, 1}},
	"name taken":                     {change: changes{counts(jobCounts{}), attempts(1, ""), holds("ChildNameConflict", "NameConflict")}, want: seen{"Pending", "NameConflict", 0, 2, 1}},
	"name taken after a restart":     {change: changes{counts(jobCounts{Active: 1, Ready: 1}), attempts(2, ""), holds("RestartingJobSet", "RestartRequested"), holds("ChildNameConflict", "NameConflict")}, jobs: [2]string{"ready"}, want: seen{"Restarting", "NameConflict", 1, 2, 2}},
	"waiting for domains":            {change: changes{counts(jobCounts{}), attempts(1, ""), holds("PlacementPending", "NoDomain")}, want: seen{"Pending", "NoDomain", 0, 2, 1}},
	"refused by a quota":             {change: changes{counts(jobCounts{}), attempts(1, ""), holds("JobCreationFailure", "QuotaExceeded")}, want: seen{"Pending", "QuotaExceeded", 0, 2, 1}},
	"unschedulable":                  {change: changes{counts(jobCounts{Active: 2}), attempts(1, ""), holds("PodsUnschedulable", "Unschedulable")}, jobs: [2]string{"starting", "starting"}, want: seen{"Starting", "Unschedulable", 0, 2, 1}},
	"unschedulable after a restart":  {change: changes{counts(jobCounts{Active: 2}), attempts(2, ""), holds("RestartingJobSet", "RestartRequested"), holds("PodsUnschedulable", "Unschedulable")}, jobs: [2]string{"starting", "starting"}, want: seen{"Restarting", "Unschedulable", 0, 2, 2}},
	"starting without pods":          {change: changes{counts(jobCounts{}), attempts(1, "")}, jobs: [2]string{"pending", "pending"}, want: seen{"Pending", "JobsNotReady", 0, 2, 1}},
	"starting":                       {change: changes{counts(jobCounts{Active: 2, Ready: 1}), attempts(1, "")}, jobs: [2]string{"ready", "starting"}, want: seen{"Starting", "JobsNotReady", 1, 2, 1}},
	"starting in order":              {change: changes{counts(jobCounts{Active: 1}), attempts(1, ""), holds("StartupPolicyInProgress", "InOrderStartupPolicyInProgress")}, jobs: [2]string{"starting"}, want: seen{"Starting", "InOrderStartupPolicyInProgress", 0, 2, 1}},
	"starting again after a failure": {change: changes{counts(jobCounts{Active: 1, Ready: 1, Failed: 1}), attempts(1, "")}, jobs: [2]string{"ready", "Failed"}, want: seen{"Starting", "JobsFailed", 1, 2, 1}},
	"running":                        {change: changes{counts(jobCounts{Active: 2, Ready: 2}), attempts(1, "")}, jobs: [2]string{"ready", "ready"}, want: seen{"Running", "", 2, 2, 1}},
	"running, one Job is complete":   {change: changes{counts(jobCounts{Active: 1, Ready: 1, Succeeded: 1}), attempts(1, "")}, jobs: [2]string{"ready", "Complete"}, want: seen{"Running", "", 2, 2, 1}},
	"running, its counts are older than its Jobs": {change: changes{counts(jobCounts{Active: 2, Ready: 1}), attempts(1, "")}, jobs: [2]string{"ready", "ready"}, want: seen{"Starting", "JobsNotReady", 1, 2, 1}},
	"restarting": {change: changes{counts(jobCounts{}), attempts(2, ""), holds("RestartingJobSet", "DefaultFailurePolicy"), func(js *jobsetv1alpha2.JobSet) { js.Status.Restarts = 1 }},
		jobs: [2]string{"outdated"}, want: seen{"Restarting", "DefaultFailurePolicy", 0, 2, 2}},
	"retried":                       {change: changes{counts(jobCounts{}), attempts(3, ""), holds("RestartingJobSet", "RetryRequested")}, want: seen{"Restarting", "RetryRequested", 0, 2, 3}},
	"cancelled":                     {change: changes{counts(jobCounts{}), attempts(1, jobsetv1alpha2.OutcomeCancelled), holds("Failed", "Cancelled")}, want: seen{"Failed", "Cancelled", 0, 2, 1}},
	"cancelled while it was queued": {change: changes{inQueue, isSuspended, counts(jobCounts{}), holds("Failed", "Cancelled")}, want: seen{"Failed", "Cancelled", 0, 2, 1}},
	"failed":                        {change: changes{counts(jobCounts{Failed: 1}), attempts(1, jobsetv1alpha2.OutcomeFailed), holds("Failed", "FailedJobs")}, jobs: [2]string{"Failed"}, want: seen{"Failed", "FailedJobs", 0, 2, 1}},
	"failed, by its terminal state": {change: changes{func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = "Failed" }}, want: seen{"Failed", "Failed", 0, 2, 1}},
	"finished":                      {change: changes{counts(jobCounts{Succeeded: 2}), attempts(1, jobsetv1alpha2.OutcomeCompleted), holds("Completed", "AllJobsCompleted")}, jobs: [2]string{"Complete", "Complete"}, want: seen{"Completed", "AllJobsCompleted", 2, 2, 1}},
	"finished, its Jobs are gone":   {change: changes{counts(jobCounts{Succeeded: 2}), attempts(1, jobsetv1alpha2.OutcomeCompleted), holds("Completed", "AllJobsCompleted")}, want: seen{"Completed", "AllJobsCompleted", 2, 2, 1}},
	"deleted, Jobs are left":        {change: changes{counts(jobCounts{Active: 2, Ready: 2}), attempts(1, ""), isDeleted("foregroundDeletion")}, jobs: [2]string{"ready"}, want: seen{"Terminating", "DependentsRemain", 2, 2, 1}},
	"deleted, held by a finalizer":  {change: changes{counts(jobCounts{Succeeded: 2}), attempts(1, jobsetv1alpha2.OutcomeCompleted), holds("Completed", "AllJobsCompleted"), isDeleted("foregroundDeletion", "example.com/hold")}, want: seen{"Terminating", "FinalizersRemain", 2, 2, 1}},
	"deleted, without a finalizer":  {change: changes{isDeleted()}, want: seen{"Terminating", "Deleted", 0, 2, 1}},
}

func (w *walked) set() *snapshot.Set {
	js := builders.JobSet("train", append(w.change, builders.WithJobs("w", 2, 1))...)
	js.CreationTimestamp, js.UID = metav1.NewTime(now.Add(-2*time.Hour)), "set"
	var jobs []batchv1.Job
	var pods []corev1.Pod
	for i, state := range w.jobs {
		if state == "" {
			continue
		}
		name := helper.JobName("train", "w", i)
		job := batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{UID: "set", Controller: ptr.To(true)}},
				Labels: map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: "w", jobsetv1alpha2.JobIndexKey: fmt.Sprint(i), jobsetv1alpha2.RestartsKey: fmt.Sprint(js.Status.Restarts)},
			},
			Spec: js.Spec.ReplicatedJobs[0].Template.Spec,
		}
		switch state {
		case "outdated":
			job.Labels[jobsetv1alpha2.RestartsKey] = "0"
		case "suspended":
			job.Spec.Suspend = ptr.To(true)
		case "pending":
		case "starting":
			job.Status.Active = 1
		case "ready":
			job.Status.Active, job.Status.Ready = 1, ptr.To[int32](1)
			pods = append(pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name + "-0-abcde", OwnerReferences: []metav1.OwnerReference{{UID: job.UID, Controller: ptr.To(true)}}},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		default:
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobConditionType(state), Status: corev1.ConditionTrue}}
		}
		jobs = append(jobs, job)
	}
	return snapshot.Assemble(js, jobs, pods, now)
}

// views shows a set in each way, with what that says.
var views = map[string]func(t *testing.T, s *snapshot.Set) seen{
	"wide": func(t *testing.T, s *snapshot.Set) seen {
		var hub jobset.JobSet
		if err := jobsetv1alpha2.Convert_v1alpha2_JobSet_To_jobset_JobSet(s.JobSet, &hub, nil); err != nil {
			t.Fatal(err)
		}
		cells := row(&hub, "2h", now)
		text := func(at int) string { s, _ := cells[at].(string); return s }
		out := seen{State: text(6), Reason: text(9)}
		if _, err := fmt.Sscanf(text(7)+" "+text(8), "%d/%d %d/", &out.Ready, &out.Wanted, &out.Attempt); err != nil {
			t.Errorf("READY %q, ATTEMPT %q: %v", text(7), text(8), err)
		}
		return out
	},
	"tree":     func(t *testing.T, s *snapshot.Set) seen { return asData(t, tree.New(s)) },
	"top":      func(t *testing.T, s *snapshot.Set) seen { return asData(t, top.New(s, "zone", nil)) },
	"timeline": func(t *testing.T, s *snapshot.Set) seen { return asData(t, timeline.Build(s.JobSet, s.Now)) },
	"why": func(t *testing.T, s *snapshot.Set) seen {
		return asData(t, why.Diagnose(&why.Evidence{Namespace: s.JobSet.Namespace, Name: s.JobSet.Name, Now: s.Now, JobSet: s.JobSet, Jobs: s.Jobs, Pods: s.Pods}))
	},
}

// asData reads what a command prints with -o json.
func asData(t *testing.T, report any) seen {
	t.Helper()
	var data struct {
		State, Reason                  string
		JobsReady, JobsWanted, Attempt int
		ReplicatedJobs                 []struct{ Ready, JobsReady, Replicas int }
	}
	content, err := json.Marshal(report)
	if err == nil {
		err = json.Unmarshal(content, &data)
	}
	if err != nil {
		t.Errorf("reading %s: %v", content, err)
	}
	for i, rj := range data.ReplicatedJobs {
		if ready := rj.Ready + rj.JobsReady; i == 0 && ready != data.JobsReady {
			t.Errorf("%T: %d Jobs of the replicatedJob are ready, and %d of the set", report, ready, data.JobsReady)
		}
	}
	return seen{data.State, data.Reason, data.JobsReady, data.JobsWanted, data.Attempt}
}

// TestViewsAgree takes a set through its states, in memory: all views show the same words and numbers.
func TestViewsAgree(t *testing.T) {
	var lines []string
	differences := 0
	phases := map[string]bool{}
	for name, state := range walk {
		phases[state.want.State] = true
		line := fmt.Sprintf("%-44s %+v", name, state.want)
		for view, show := range views {
			got := show(t, state.set())
			if diff := cmp.Diff(state.want, got); diff != "" {
				differences++
				t.Errorf("%s, %s (-want +got):\n%s", name, view, diff)
			}
		}
		lines = append(lines, line)
		healthy := slices.Contains([]string{helper.PhaseRunning, helper.PhaseCompleted}, state.want.State)
		if state.want.Reason == "" && !healthy {
			t.Errorf("%s: no reason is given", name)
		}
	}
	for _, phase := range helper.Phases {
		if !phases[phase] {
			t.Errorf("no state has the phase %s", phase)
		}
	}
	slices.Sort(lines)
	t.Logf("%d states × %d views, %d differences\n%s", len(walk), len(views), differences, strings.Join(lines, "\n"))
}
