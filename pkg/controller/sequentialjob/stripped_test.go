// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// strip takes the label away by which caches select the child of the first step, if that is there.
func (r *rig) strip(t *testing.T) {
	t.Helper()
	r.changeJob(t, func(job *batchv1.Job) { delete(job.Labels, batchv1alpha1.SequentialJobUIDKey) })
}

func (r *rig) changeJob(t *testing.T, change func(*batchv1.Job)) {
	t.Helper()
	job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	change(job)
	if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) changeSequence(t *testing.T, change func(*batchv1alpha1.SequentialJob)) {
	t.Helper()
	next := r.sequence(t)
	change(next)
	if err := r.client.Tracker().Update(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs"), next, "ns"); err != nil {
		t.Fatal(err)
	}
}

// TestSequenceWithStrippedChild has another party that takes the label of the child away again and again, so that no cache shows the
// child. What the API says about the child is known all the same.
func TestSequenceWithStrippedChild(t *testing.T) {
	gone := func(t *testing.T, r *rig) bool {
		_, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	for name, tc := range map[string]struct {
		begin  func(*batchv1alpha1.SequentialJob)
		change func(t *testing.T, r *rig)
		want   func(t *testing.T, r *rig) bool
	}{
		"it is suspended": {
			change: func(t *testing.T, r *rig) {
				r.changeSequence(t, func(sj *batchv1alpha1.SequentialJob) { suspended(sj); sj.Generation++ })
			},
			want: func(t *testing.T, r *rig) bool {
				job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
				return err == nil && ptr.Deref(job.Spec.Suspend, false) && meta.IsStatusConditionTrue(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionSuspended)
			},
		},
		"it is cancelled": {
			change: func(t *testing.T, r *rig) { r.changeSequence(t, cancelled) },
			want: func(t *testing.T, r *rig) bool {
				return gone(t, r) && r.sequence(t).Status.Steps[0].State == batchv1alpha1.StepFailed && len(r.sequence(t).Finalizers) == 1
			},
		},
		"it is cancelled, and the API refuses to put the label back": {
			change: func(t *testing.T, r *rig) { refuse(r.kube, "patch", "jobs", errDenied); r.changeSequence(t, cancelled) },
			want:   gone,
		},
		"it is deleted": {
			change: func(t *testing.T, r *rig) { r.changeSequence(t, deleted) },
			want:   func(t *testing.T, r *rig) bool { return gone(t, r) && len(r.sequence(t).Finalizers) == 1 },
		},
		"its step completes": {
			change: func(t *testing.T, r *rig) {
				r.changeJob(t, func(job *batchv1.Job) {
					job.Status.Succeeded = 1
					job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
				})
			},
			want: func(t *testing.T, r *rig) bool {
				_, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-1", metav1.GetOptions{})
				return err == nil && r.sequence(t).Status.Steps[0].State == batchv1alpha1.StepSucceeded
			},
		},
		"its deadline is over": {
			begin:  func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](200) },
			change: func(*testing.T, *rig) {},
			want:   gone,
		},
		"its child was created a moment ago": {
			begin: func(sj *batchv1alpha1.SequentialJob) { sj.Status.Steps[0].ChildUID = "" },
			change: func(t *testing.T, r *rig) {
				r.changeSequence(t, func(sj *batchv1alpha1.SequentialJob) { suspended(sj); sj.Generation++ })
			},
			want: func(t *testing.T, r *rig) bool {
				job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
				return err == nil && ptr.Deref(job.Spec.Suspend, false)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakePassiveClock(time.Now())
			sj := newSequence(started)
			if tc.begin != nil {
				tc.begin(sj)
			}
			stored := jobOf(sj)
			stored.ResourceVersion = "5"
			r := newRigAt(t, now, sj, stored)
			r.strip(t)
			seconds := 0
			r.minutes(t, now, "", func() {
				r.strip(t)
				if seconds++; seconds == 100 {
					tc.change(t, r)
				}
			})
			if !tc.want(t, r) {
				t.Errorf("not within 200 s: %+v", r.sequence(t).Status)
			}
		})
	}
}

// TestAnswersChangeNothing has a decision ask for a child that has lost its label. The label is put back after the decision.
func TestAnswersChangeNothing(t *testing.T) {
	sj := newSequence(started)
	r := newRig(t, sj, jobOf(sj))
	r.strip(t)
	r.cached(t)
	obs, _, err := r.Observe(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	asking := plan.Decide(*obs)
	diff(t, "the questions", []string{"unseen child"}, asking.Questions())
	if err := r.Loop.Kind.Answer(t.Context(), obs, asking); err != nil {
		t.Fatal(err)
	}
	diff(t, "writes of the answer", []string(nil), r.written())
	claiming := plan.Decide(*obs)
	if _, err := r.Loop.Kind.Claim(t.Context(), obs, claiming); err != nil {
		t.Fatal(err)
	}
	label := `{"op":"add","path":"/metadata/labels/`
	if writes := r.written(); len(writes) != 1 || !strings.Contains(writes[0], label) {
		t.Errorf("writes of the claim %q, want one of %s", writes, label)
	}
	diff(t, "whether the next decision waits for the cache", true, plan.Decide(*obs).Lags)
}
