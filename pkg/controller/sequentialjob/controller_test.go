// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

var errRefused = errors.New("refused")

// run lets the controller work until the test ends.
func (r *rig) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	r.watches.Start(ctx)
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// eventually lets the time of the bubble pass until the condition holds and nothing is left to do at that moment.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	synctest.Wait()
	for begun := time.Now(); !condition(); synctest.Wait() {
		if time.Since(begun) > time.Minute {
			t.Fatalf("after %v it is still not true that %s", time.Since(begun), what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *rig) sequence(t *testing.T) *batchv1alpha1.SequentialJob {
	t.Helper()
	sj, err := r.client.BatchV1alpha1().SequentialJobs("ns").Get(t.Context(), "etl", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sj
}

func (r *rig) finish(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" runs", func() bool {
		steps := r.sequence(t).Status.Steps
		return len(steps) > 0 && steps[len(steps)-1].ChildName == name && steps[len(steps)-1].State == batchv1alpha1.StepRunning
	})
	job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if _, err := r.kube.BatchV1().Jobs("ns").UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestSequenceRunsToCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSequence())
		r.run(t)
		r.finish(t, "etl-0")
		r.finish(t, "etl-1")
		eventually(t, "the sequence has completed", func() bool {
			sj := r.sequence(t)
			return helper.Phase(sj) == batchv1alpha1.PhaseCompleted && len(sj.Finalizers) == 0
		})
		diff(t, "the events", []string{
			"Normal JobStarted Started job 0", "Normal JobCompleted Job 0 completed successfully",
			"Normal JobStarted Started job 1", "Normal JobCompleted Job 1 completed successfully", "Normal AllJobsCompleted Completed 2 jobs",
		}, r.events.all())
	})
}

// TestOrderOfWrites checks that the start of a step is stored first, and the finalizer before its child is there.
func TestOrderOfWrites(t *testing.T) {
	r := newRig(t, newSequence())
	if err := r.syncs(t, 1); err != nil {
		t.Fatal(err)
	}
	diff(t, "the first pass", []string{"update sequentialjobs/status"}, prefixes(r.written(), 28))
	if err := r.syncs(t, 1); err != nil {
		t.Fatal(err)
	}
	diff(t, "the second pass", []string{"patch sequentialjobs etl", "create jobs etl-0"}, prefixes(r.written(), 24))
	diff(t, "the finalizers", []string{batchv1alpha1.SequentialJobFinalizer}, r.sequence(t).Finalizers)
}

func prefixes(lines []string, n int) (short []string) {
	for _, line := range lines {
		short = append(short, line[:min(n, len(line))])
	}
	return short
}

func TestNoChildWithoutFinalizer(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSequence())
	refuse(r.client, "patch", "sequentialjobs", errRefused)
	for range 2 {
		if err := r.syncs(t, 2); err == nil {
			t.Error("no error")
		}
		now.SetTime(now.Now().Add(hostplan.PassesAfter))
	}
	for _, line := range r.written() {
		if line == "create jobs etl-0" {
			t.Error("a child was created")
		}
	}
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionFailed)
	if c == nil || c.Reason != batchv1alpha1.ReasonReconciliationError || c.Message != "Failed to reconcile: adding the finalizer to sequentialjob ns/etl: refused" {
		t.Errorf("condition %+v", c)
	}
}

func TestDeletionStopsTheChildFirst(t *testing.T) {
	sj := newSequence(started, deleted)
	r := newRig(t, sj, jobOf(sj))
	if err := r.syncs(t, 1); err != nil {
		t.Fatal(err)
	}
	diff(t, "the first pass", []string{"delete jobs etl-0 Foreground uid-0"}, r.written())
	diff(t, "the events", []string{"Normal JobStopped Stopped job 0, Job etl-0, because the SequentialJob is being deleted"}, r.events.all())
	if err := r.syncs(t, 1); err != nil {
		t.Fatal(err)
	}
	diff(t, "the finalizers", []string{"other"}, r.sequence(t).Finalizers)
}

func TestDeletionWithoutPermission(t *testing.T) {
	sj := newSequence(started, deleted)
	r := newRig(t, sj, jobOf(sj))
	refuse(r.kube, "delete", "jobs", apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errRefused))
	if err := r.syncs(t, 1); err != nil {
		t.Fatal(err)
	}
	diff(t, "the finalizers", []string{"other"}, r.sequence(t).Finalizers)
	diff(t, "the events", []string{"Warning JobNotStopped Job 0 was left to run because the controller has no permission to delete Job etl-0"}, r.events.all())
}

func TestDeletionWaitsForAnAnswer(t *testing.T) {
	sj := newSequence(started, deleted)
	r := newRig(t, sj, jobOf(sj))
	refuse(r.kube, "delete", "jobs", errRefused)
	if err := r.syncs(t, 2); err == nil {
		t.Error("no error")
	}
	diff(t, "the finalizers", sj.Finalizers, r.sequence(t).Finalizers)
}

func TestJobSetSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSequence(func(sj *batchv1alpha1.SequentialJob) {
			step := batchv1alpha1.SequentialJobStep{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}
			step.JobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "w"}}
			sj.Spec.Containers, sj.Spec.Steps = nil, []batchv1alpha1.SequentialJobStep{step}
		}))
		r.run(t)
		eventually(t, "the step runs", func() bool {
			steps := r.sequence(t).Status.Steps
			return len(steps) == 1 && steps[0].State == batchv1alpha1.StepRunning && steps[0].Kind == batchv1alpha1.StepKindJobSet
		})
		sets := r.client.JobsetV1alpha2().JobSets("ns")
		js, err := sets.Get(t.Context(), "etl-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed
		js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.JobSetFailed, Status: metav1.ConditionTrue, Reason: "ReachedMaxRestarts"}}
		js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, FirstCause: &jobsetv1alpha2.FailureCause{Job: "etl-0-w-0", Pod: "p"}}}
		if _, err := sets.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the sequence has failed", func() bool { return helper.Phase(r.sequence(t)) == batchv1alpha1.PhaseFailed })
		step := r.sequence(t).Status.Steps[0]
		diff(t, "the reason", "ReachedMaxRestarts", step.Reason)
		diff(t, "the first cause", &jobsetv1alpha2.FailureCause{Job: "etl-0-w-0", Pod: "p"}, step.FirstCause)
	})
}

// TestLaggingCache has a child that another process has seen, and that these caches do not show.
func TestLaggingCache(t *testing.T) {
	sj := newSequence(started)
	for name, tc := range map[string]struct {
		jobs []runtime.Object
		want int32
	}{
		"a child that exists":         {[]runtime.Object{jobOf(sj)}, 1},
		"a child that is gone":        {nil, 2},
		"another object of that name": {[]runtime.Object{&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: "ns", UID: "x"}}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sj.DeepCopy(), tc.jobs...)
			if err := r.caches.sequentialJobs.GetIndexer().Add(sj); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			diff(t, "the attempts", tc.want, r.sequence(t).Status.Steps[0].Attempts)
		})
	}
}

// TestLostLabel has a child that no cache shows, because a user removed the label by which it is selected.
func TestLostLabel(t *testing.T) {
	unseen := func(sj *batchv1alpha1.SequentialJob) {
		sj.Status.Steps[0].ChildUID, sj.Status.Steps[0].State = "", batchv1alpha1.StepStarting
	}
	for name, tc := range map[string]struct {
		seen   func(*batchv1alpha1.SequentialJob)
		labels map[string]string
	}{
		"of a child that status does not know": {unseen, nil},
		"of a child that status knows":         {func(*batchv1alpha1.SequentialJob) {}, nil},
		"beside other labels":                  {func(*batchv1alpha1.SequentialJob) {}, map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			sj := newSequence(started, tc.seen)
			job := jobOf(sj)
			job.Labels = tc.labels
			r := newRig(t, sj, job)
			if err := r.syncs(t, 1); err != nil {
				t.Fatal(err)
			}
			got, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "the label", "uid-etl", got.Labels[batchv1alpha1.SequentialJobUIDKey])
			diff(t, "another label", tc.labels["a"], got.Labels["a"])
			diff(t, "the attempts", int32(1), r.sequence(t).Status.Steps[0].Attempts)
		})
	}
}
