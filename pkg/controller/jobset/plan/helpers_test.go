// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// now is the time of every observation in tests; before is some time ago.
var (
	now    = metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	before = metav1.NewTime(now.Add(-time.Hour))
)

// newSet returns a set named "js" as the API stores it.
func newSet(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "uid-js"},
		Spec: jobsetv1alpha2.JobSetSpec{
			Network:       &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true)},
			SuccessPolicy: &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll},
			StartupPolicy: &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.AnyOrder},
		},
	}
	for _, f := range change {
		f(js)
	}
	return js
}

// with adds a replicatedJob of so many Jobs.
func with(name string, replicas int32, change ...func(*jobsetv1alpha2.ReplicatedJob)) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		rj := jobsetv1alpha2.ReplicatedJob{Name: name, Replicas: ptr.To(replicas), GroupName: ptr.To("default")}
		rj.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
		for _, f := range change {
			f(&rj)
		}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
	}
}

func isSuspended(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }

func inOrder(js *jobsetv1alpha2.JobSet) {
	js.Spec.StartupPolicy.StartupPolicyOrder = jobsetv1alpha2.InOrder
}

func dependsOn(name string, status jobsetv1alpha2.DependsOnStatus) func(*jobsetv1alpha2.ReplicatedJob) {
	return func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.DependsOn = append(rj.DependsOn, jobsetv1alpha2.DependsOn{Name: name, Status: status})
	}
}

func failurePolicy(maxRestarts int32, rules ...jobsetv1alpha2.FailurePolicyRule) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
			MaxRestarts: maxRestarts, RestartStrategy: jobsetv1alpha2.RestartStrategyRecreate, Rules: rules,
		}
	}
}

func blockingRecreate(js *jobsetv1alpha2.JobSet) {
	js.Spec.FailurePolicy.RestartStrategy = jobsetv1alpha2.RestartStrategyBlockingRecreate
}

func restarted(times, counted int32) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Restarts, js.Status.RestartsCountTowardsMax = times, counted
	}
}

func granted(restarts int32) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Status.AddedRestarts = restarts }
}

func withCondition(conditionType string, status metav1.ConditionStatus, reason, message string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: before,
		})
	}
}

func completed(js *jobsetv1alpha2.JobSet) {
	withCondition(jobsetv1alpha2.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "jobset completed successfully")(js)
	js.Status.TerminalState = jobsetv1alpha2.TerminalStateCompleted
}

func withTTL(seconds int32) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To(seconds) }
}

// jobNamed returns a Job of the set in attempt 0, with one pod wanted.
func jobNamed(replicatedJob string, index int, change ...func(*batchv1.Job)) *batchv1.Job {
	name := fmt.Sprintf("js-%s-%d", replicatedJob, index)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: "7",
			Labels: map[string]string{
				jobsetv1alpha2.ReplicatedJobNameKey: replicatedJob,
				jobsetv1alpha2.JobIndexKey:          fmt.Sprint(index),
				jobsetv1alpha2.RestartsKey:          "0",
			},
			Annotations: map[string]string{},
		},
		Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1), Suspend: ptr.To(false)},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

func label(key, value string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Labels[key] = value }
}

func unlabeled(key string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { delete(job.Labels, key) }
}

func attempt(n string) func(*batchv1.Job) { return label(jobsetv1alpha2.RestartsKey, n) }

func succeeded(job *batchv1.Job) {
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

// failedWith makes the Job failed, so many minutes after some time ago.
func failedWith(reason, message string, minute int) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(before.Add(time.Duration(minute) * time.Minute)),
		})
	}
}

func jobFailed(job *batchv1.Job) { failedWith("BackoffLimitExceeded", "", 0)(job) }

func ready(job *batchv1.Job) { job.Status.Active, job.Status.Ready = 1, ptr.To[int32](1) }

func jobIsSuspended(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }

// podsStop makes the Job one whose pods are being deleted, and still run.
func podsStop(job *batchv1.Job) { job.Status.Terminating = ptr.To[int32](2) }

// endedAs makes the set one that has completed or failed.
func endedAs(conditionType string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		withCondition(conditionType, metav1.ConditionTrue, "Done", "done")(js)
		js.Status.TerminalState = conditionType
	}
}

// releasedAt marks the Job as released at a generation of the set.
func releasedAt(generation string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Annotations[jobsetv1alpha2.ReleasedKey] = generation }
}

// releasedAt5 are the annotations of a Job that is released at generation 5 of the set.
var releasedAt5 = map[string]string{jobsetv1alpha2.ReleasedKey: "5"}

// failureTarget makes the Job one that is bound to fail, so many minutes after some time ago.
func failureTarget(reason string, minute int) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		ready(job)
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: reason,
			LastTransitionTime: metav1.NewTime(before.Add(time.Duration(minute) * time.Minute)),
		})
	}
}

func terminating(job *batchv1.Job) { job.DeletionTimestamp = &before }

// observe is a snapshot in which the Service exists, and from which nothing can be learned by asking.
func observe(js *jobsetv1alpha2.JobSet, jobs ...*batchv1.Job) Observed {
	return Observed{
		JobSet: js, Jobs: jobs, ServiceExists: true, Claims: sets.New[string](), Now: now,
		Restored: hostplan.None[Restored](), Nodes: hostplan.NotObtained[int](), ShutOut: hostplan.NotObtained[sets.Set[types.UID]](),
		InPlace: hostplan.NotObtained[map[types.UID]inplace.State](), Placed: hostplan.NotObtained[domains.Placed](), Moving: hostplan.NotObtained[domains.Moving](),
		Located: hostplan.NotObtained[domains.Located](), Cause: hostplan.NotObtained[*jobsetv1alpha2.FailureCause](),
		FailedInPlace: hostplan.NotObtained[*jobsetv1alpha2.FailureCause](),
	}
}

// The following functions return what a decision asks for if the answer is not known.

func restoreAsked(o Observed) bool {
	o.Restored = hostplan.Known[Restored]{}
	return Decide(o).Asks.Restored
}

func causeAsked(o Observed) *FailedJob {
	o.Cause = hostplan.Known[*jobsetv1alpha2.FailureCause]{}
	return Decide(o).Asks.FirstCause
}

func nodesAsked(o Observed) bool {
	o.Nodes = hostplan.Known[int]{}
	return Decide(o).Asks.Nodes
}

func unplacedJobs(o Observed) []domains.Unplaced {
	o.Placed = hostplan.Known[domains.Placed]{}
	return Decide(o).Asks.Unplaced
}

func unlocatedJobs(o Observed) []domains.Unlocated {
	o.Located = hostplan.Known[domains.Located]{}
	return Decide(o).Asks.Unlocated
}

func stuck(o Observed) []domains.Stuck {
	o.Moving = hostplan.Known[domains.Moving]{}
	return Decide(o).Asks.Stuck
}

func times(words []string, suffix string) (out []string) {
	for _, word := range words {
		out = append(out, word+suffix)
	}
	return out
}

func names[T metav1.Object](objects []T) []string {
	var out []string
	for _, object := range objects {
		out = append(out, object.GetName())
	}
	return out
}

func refNames(refs []JobRef) []string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.Name)
	}
	return out
}

func diff(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	// Finding out what differs takes long; most calls of the random tests find nothing.
	if len(options) == 0 && reflect.DeepEqual(want, got) {
		return
	}
	if d := cmp.Diff(want, got, append(options, cmpopts.EquateEmpty())...); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
