// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	typedbatch "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

func testBadSequenceActions(t *testing.T, s *sequences) {
	s.running(t, "a")
	failed := s.running(t, "failed")
	failed.Status.Conditions = []metav1.Condition{{
		Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonJobFailed, LastTransitionTime: failed.CreationTimestamp,
	}}
	s.store(t, failed)
	retry := func(name string, spec batchv1alpha1.SequentialJobRetrySpec) error {
		_, err := s.typed.Retry(t.Context(), name, &batchv1alpha1.SequentialJobRetry{Spec: spec}, metav1.CreateOptions{})
		return err
	}
	suspend := func(spec batchv1alpha1.SequentialJobActionSpec) error {
		_, err := s.typed.Suspend(t.Context(), "a", &batchv1alpha1.SequentialJobSuspend{Spec: spec}, metav1.CreateOptions{})
		return err
	}
	cases := map[string]struct {
		err  error
		is   func(error) bool
		want string
	}{
		"a long reason": {suspend(batchv1alpha1.SequentialJobActionSpec{Reason: strings.Repeat("a", 1025)}), apierrors.IsInvalid, "spec.reason: Too long"},
		"a negative attempt": {suspend(batchv1alpha1.SequentialJobActionSpec{Preconditions: &batchv1alpha1.SequentialJobPreconditions{Attempt: ptr.To[int32](-1)}}),
			apierrors.IsInvalid, "spec.preconditions.attempt: Invalid value: -1: must be 0 or more"},
		"another step": {suspend(batchv1alpha1.SequentialJobActionSpec{Preconditions: &batchv1alpha1.SequentialJobPreconditions{Step: "load"}}),
			apierrors.IsConflict, `preconditions.step is load, but attempt 1 of step "transform" is current`},
		"an unknown step": {retry("failed", batchv1alpha1.SequentialJobRetrySpec{FromStep: "deploy"}),
			apierrors.IsInvalid, `spec.fromStep: Invalid value: "deploy": must be the name of a step of the SequentialJob: extract, transform, load`},
		"a later step": {retry("failed", batchv1alpha1.SequentialJobRetrySpec{FromStep: "load"}),
			apierrors.IsInvalid, `spec.fromStep: Invalid value: "load": must be the step that failed, transform, or one before it`},
		"a sequence that runs":      {retry("a", batchv1alpha1.SequentialJobRetrySpec{}), apierrors.IsConflict, "restart its current step instead"},
		"a sequence that is not":    {retry("missing", batchv1alpha1.SequentialJobRetrySpec{}), apierrors.IsNotFound, `sequentialjobs.batch.jobset-apiserver.io "missing" not found`},
		"the name of another in it": {misnamed(t.Context(), s), apierrors.IsBadRequest, `metadata.name must be "a", the name of the SequentialJob in the URL, not "b"`},
	}
	for name, tc := range cases {
		if !tc.is(tc.err) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, tc.err, tc.want)
		}
	}
}

func misnamed(ctx context.Context, s *sequences) error {
	request := &batchv1alpha1.SequentialJobCancel{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	_, err := s.typed.Cancel(ctx, "a", request, metav1.CreateOptions{})
	return err
}

func testSequenceSuspendEdit(t *testing.T, s *sequences) {
	s.running(t, "a")
	eve := s.asUser(t, "eve", "system:masters")
	stored, err := eve.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := stored.Status.LastAction
	if last == nil || last.Action != batchv1alpha1.ActionSuspend || last.User != "eve" || last.Step != "transform" || last.Attempt != 1 {
		t.Errorf("the last action is %+v", last)
	}
}

func testSequenceRestartStrategy(t *testing.T, s *sequences) {
	sj := s.running(t, "a", func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.UpdateStrategy = &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateRestart}
	})
	sj.Spec.Containers[1].Image = "other"
	stored, err := s.typed.Update(t.Context(), sj, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if step := stored.Status.Steps[1]; step.Attempts != 2 || step.State != batchv1alpha1.StepStarting || step.ChildUID != "" || step.StartTime == nil {
		t.Errorf("the step is %+v", step)
	}
}

// sequenceCalls are all actions in their plainest form, in an order in which every one succeeds.
var sequenceCalls = []struct {
	name string
	call func(context.Context, typedbatch.SequentialJobInterface, string) error
}{
	{"restart", func(ctx context.Context, c typedbatch.SequentialJobInterface, name string) error {
		_, err := c.Restart(ctx, name, &batchv1alpha1.SequentialJobRestart{}, metav1.CreateOptions{})
		return err
	}},
	{"suspend", func(ctx context.Context, c typedbatch.SequentialJobInterface, name string) error {
		_, err := c.Suspend(ctx, name, &batchv1alpha1.SequentialJobSuspend{}, metav1.CreateOptions{})
		return err
	}},
	{"resume", func(ctx context.Context, c typedbatch.SequentialJobInterface, name string) error {
		_, err := c.Resume(ctx, name, &batchv1alpha1.SequentialJobResume{}, metav1.CreateOptions{})
		return err
	}},
	{"cancel", func(ctx context.Context, c typedbatch.SequentialJobInterface, name string) error {
		_, err := c.Cancel(ctx, name, &batchv1alpha1.SequentialJobCancel{}, metav1.CreateOptions{})
		return err
	}},
	{"retry", func(ctx context.Context, c typedbatch.SequentialJobInterface, name string) error {
		_, err := c.Retry(ctx, name, &batchv1alpha1.SequentialJobRetry{}, metav1.CreateOptions{})
		return err
	}},
}

// testSequenceActionPermissions gives each action to a user of its own, who can do nothing else.
func testSequenceActionPermissions(t *testing.T, s *sequences) {
	s.running(t, "a")
	for _, permitted := range sequenceCalls {
		user := "sequence-operator-" + permitted.name
		s.permit(t, user, rbacv1.PolicyRule{
			APIGroups: []string{batchv1alpha1.GroupName}, Resources: []string{"sequentialjobs/" + permitted.name}, ResourceNames: []string{"a"}, Verbs: []string{"create"},
		})
		client := s.asUser(t, user)
		framework.Eventually(t, "the permission holds", func(ctx context.Context) error {
			return permitted.call(ctx, client, "a")
		})
		for _, other := range sequenceCalls {
			if err := other.call(t.Context(), client, "a"); other.name != permitted.name && !apierrors.IsForbidden(err) {
				t.Errorf("%s with the permission to %s: %v", other.name, permitted.name, err)
			}
		}
	}
}
