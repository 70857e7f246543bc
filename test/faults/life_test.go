// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	setName = "train"
	// jobs is the number of Jobs of a set, one pod each.
	jobs = 100
	// pollInterval is the time between two attempts of a poll.
	pollInterval = 250 * time.Millisecond
)

// phaseTimeout bounds a phase, which may take as long as the machine needs.
var phaseTimeout = framework.StepTimeout()

// Annotations that steer simulated pods (docs/local-cluster.md).
const (
	outcomeKey    = "jobset-apiserver.io/kwok-outcome"
	runSecondsKey = "jobset-apiserver.io/kwok-run-seconds"
)

// life is one set from its creation to its completion. Its pods run until the test ends them.
type life struct {
	framework.Test
	ctx        context.Context
	dice       *rand.Rand
	namespace  string
	invariants *invariants
	uid        types.UID
	// restarts is the number of restarts that were caused.
	restarts int32
}

// phase is a part of a life: what begins it, and what must hold at its end. writes is about the number of writes of the
// controller in between.
type phase struct {
	name   string
	writes int
	begin  func() error
	ended  func(*jobsetv1alpha2.JobSet, []batchv1.Job) error
}

func newLife(t *testing.T, dice *rand.Rand) *life {
	t.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	namespace, err := shared.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Kube.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &life{Test: framework.Test{T: t}, ctx: ctx, dice: dice, namespace: namespace.Name, invariants: newInvariants(t, namespace.Name)}
}

// phases are all phases in order.
func (l *life) phases() []phase {
	return []phase{
		{"start", jobs + 1, l.create, l.runs},
		{"restart", 2*jobs + 1, l.failSome, l.runs},
		{"suspend", jobs + 1, func() error { return l.setSuspend(true) }, l.isSuspended},
		{"resume", jobs + 1, func() error { return l.setSuspend(false) }, l.runs},
		{"complete", 5, l.finishAll, l.isComplete},
	}
}

// live goes through one phase and then checks the invariants.
func (l *life) live(p phase) {
	l.Helper()
	begin := time.Now()
	l.poll("beginning to "+p.name, p.begin)
	l.poll("waiting for the end of "+p.name, func() error {
		set, err := l.set()
		if err != nil {
			return err
		}
		children, err := shared.Kube.BatchV1().Jobs(l.namespace).List(l.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return p.ended(set, children.Items)
	})
	for _, problem := range l.invariants.violations(l.uid, jobs, l.restarts) {
		l.Errorf("after %s: %s", p.name, problem)
	}
	l.Logf("%s took %v", p.name, time.Since(begin).Round(100*time.Millisecond))
}

// poll tries until there is no error. While our server restarts, the tests' own requests fail too.
func (l *life) poll(what string, try func() error) {
	l.Helper()
	problem := errors.New("not tried")
	err := wait.PollUntilContextTimeout(l.ctx, pollInterval, phaseTimeout, true, func(context.Context) (bool, error) {
		problem = try()
		return problem == nil, nil
	})
	if err != nil {
		l.Fatalf("%s: after %v: %v", what, phaseTimeout, problem)
	}
}

func (l *life) set() (*jobsetv1alpha2.JobSet, error) {
	return shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Get(l.ctx, setName, metav1.GetOptions{})
}

func (l *life) create() error {
	set := builders.JobSet(setName, builders.WithJobs("workers", jobs, 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec.BackoffLimit = ptr.To[int32](0)
		rj.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		rj.Template.Spec.Template.Annotations = map[string]string{outcomeKey: "running"}
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Namespace = l.namespace
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 10}
	})
	created, err := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Create(l.ctx, set, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // by an earlier request whose answer was lost
		created, err = l.set()
	}
	if err == nil {
		l.uid = created.UID
	}
	return err
}

func (l *life) setSuspend(suspend bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	_, err := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Patch(l.ctx, setName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// failSome lets the pods of up to five Jobs fail at the same time: one failure for the set.
func (l *life) failSome() error {
	if err := l.steer(1+l.dice.IntN(5), "failed"); err != nil {
		return err
	}
	l.restarts++
	return nil
}

func (l *life) finishAll() error { return l.steer(jobs, "succeeded") }

// steer gives some pods an outcome, at once.
func (l *life) steer(count int, outcome string) error {
	pods, err := shared.Kube.CoreV1().Pods(l.namespace).List(l.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	l.dice.Shuffle(len(pods.Items), func(i, j int) { pods.Items[i], pods.Items[j] = pods.Items[j], pods.Items[i] })
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:"0"}}}`, outcomeKey, outcome, runSecondsKey)
	failures := make([]error, count)
	workqueue.ParallelizeUntil(l.ctx, 20, count, func(i int) {
		_, failures[i] = shared.Kube.CoreV1().Pods(l.namespace).Patch(l.ctx, pods.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
	return errors.Join(failures...)
}

// runs holds when the set has been restarted as often as it failed, and all Jobs of this attempt run.
func (l *life) runs(set *jobsetv1alpha2.JobSet, children []batchv1.Job) error {
	return errors.Join(
		l.status(set, func(s *jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Ready }),
		notTrue(set, jobsetv1alpha2.JobSetSuspended), notTrue(set, jobsetv1alpha2.JobSetRestarting),
		l.all(children, func(job *batchv1.Job) bool {
			return job.DeletionTimestamp == nil && ptr.Deref(job.Status.Ready, 0) == 1 && !ptr.Deref(job.Spec.Suspend, false)
		}))
}

func (l *life) isSuspended(set *jobsetv1alpha2.JobSet, children []batchv1.Job) error {
	if !meta.IsStatusConditionTrue(set.Status.Conditions, jobsetv1alpha2.JobSetSuspended) {
		return errors.New("the set is not suspended")
	}
	return errors.Join(
		l.status(set, func(s *jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Suspended - s.Active }),
		l.all(children, func(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) && job.Status.Active == 0 }))
}

func (l *life) isComplete(set *jobsetv1alpha2.JobSet, children []batchv1.Job) error {
	if set.Status.TerminalState != jobsetv1alpha2.TerminalStateCompleted {
		return fmt.Errorf("terminal state is %q", set.Status.TerminalState)
	}
	return errors.Join(
		l.status(set, func(s *jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Succeeded }),
		l.all(children, func(job *batchv1.Job) bool { return job.Status.Succeeded == 1 }))
}

// status compares a counter of the status with the number of Jobs, and restarts with those that were caused.
func (l *life) status(set *jobsetv1alpha2.JobSet, counter func(*jobsetv1alpha2.ReplicatedJobStatus) int32) error {
	s := set.Status
	if len(s.ReplicatedJobsStatus) != 1 || counter(&s.ReplicatedJobsStatus[0]) != jobs {
		return fmt.Errorf("states of the Jobs are %+v", s.ReplicatedJobsStatus)
	}
	if s.Restarts != l.restarts || s.RestartsCountTowardsMax != l.restarts {
		return fmt.Errorf("%d restarts, %d of them counted, must be %d", s.Restarts, s.RestartsCountTowardsMax, l.restarts)
	}
	return nil
}

// all returns an error if Jobs are not of this attempt, or not in the expected state.
func (l *life) all(children []batchv1.Job, right func(*batchv1.Job) bool) error {
	var wrong []string
	for i := range children {
		if job := &children[i]; job.Labels[jobsetv1alpha2.RestartsKey] != fmt.Sprint(l.restarts) || !right(job) {
			wrong = append(wrong, job.Name)
		}
	}
	if len(children) != jobs || len(wrong) > 0 {
		return fmt.Errorf("%d Jobs, %d of them not as they should be: %.200s", len(children), len(wrong), strings.Join(wrong, " "))
	}
	return nil
}

func notTrue(set *jobsetv1alpha2.JobSet, condition string) error {
	if meta.IsStatusConditionTrue(set.Status.Conditions, condition) {
		return fmt.Errorf("condition %s is True", condition)
	}
	return nil
}
