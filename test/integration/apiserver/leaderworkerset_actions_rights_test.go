// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	typedgroups "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

func testBadGroupActions(t *testing.T, s *groupSets) {
	s.createGroups(t, "a", "v1")
	restart := func(name string, spec batchv1alpha1.LeaderWorkerSetRestartSpec) error {
		_, err := s.typed.Restart(t.Context(), name, &batchv1alpha1.LeaderWorkerSetRestart{Spec: spec}, metav1.CreateOptions{})
		return err
	}
	rollback := func(spec batchv1alpha1.LeaderWorkerSetRollbackSpec) error {
		_, err := s.typed.Rollback(t.Context(), "a", &batchv1alpha1.LeaderWorkerSetRollback{Spec: spec}, metav1.CreateOptions{})
		return err
	}
	uid := types.UID("other")
	for name, tc := range map[string]struct {
		err  error
		is   func(error) bool
		want string
	}{
		"a long reason":     {restart("a", batchv1alpha1.LeaderWorkerSetRestartSpec{Reason: strings.Repeat("a", 1025)}), apierrors.IsInvalid, "spec.reason: Too long"},
		"a negative group":  {restart("a", batchv1alpha1.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](-1)}), apierrors.IsInvalid, "spec.group: Invalid value: -1: must be 0 or more"},
		"a group too high":  {restart("a", batchv1alpha1.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](4)}), apierrors.IsInvalid, "must be the index of a group of the LeaderWorkerSet, from 0 to 3"},
		"another set":       {restart("a", batchv1alpha1.LeaderWorkerSetRestartSpec{Preconditions: &batchv1alpha1.LeaderWorkerSetPreconditions{UID: &uid}}), apierrors.IsConflict, "it was deleted and recreated"},
		"a missing set":     {restart("missing", batchv1alpha1.LeaderWorkerSetRestartSpec{}), apierrors.IsNotFound, `leaderworkersets.leaderworkerset.x-k8s.io "missing" not found`},
		"no revision":       {rollback(batchv1alpha1.LeaderWorkerSetRollbackSpec{}), apierrors.IsConflict, "there is no former revision to return to: none exists; spec.revisionHistoryLimit is 0"},
		"negative revision": {rollback(batchv1alpha1.LeaderWorkerSetRollbackSpec{ToRevision: -1}), apierrors.IsInvalid, "spec.toRevision: Invalid value: -1: must be 0 or more"},
	} {
		if !tc.is(tc.err) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, tc.err, tc.want)
		}
	}
}

// groupCalls are the actions on a set.
var groupCalls = map[string]func(context.Context, typedgroups.LeaderWorkerSetInterface) error{
	"restart": func(ctx context.Context, c typedgroups.LeaderWorkerSetInterface) error {
		_, err := c.Restart(ctx, "a", &batchv1alpha1.LeaderWorkerSetRestart{}, metav1.CreateOptions{})
		return err
	},
	"rollback": func(ctx context.Context, c typedgroups.LeaderWorkerSetInterface) error {
		_, err := c.Rollback(ctx, "a", &batchv1alpha1.LeaderWorkerSetRollback{}, metav1.CreateOptions{})
		return err
	},
	"pause": func(ctx context.Context, c typedgroups.LeaderWorkerSetInterface) error {
		_, err := c.Pause(ctx, "a", &batchv1alpha1.LeaderWorkerSetPause{}, metav1.CreateOptions{})
		return err
	},
	"resume": func(ctx context.Context, c typedgroups.LeaderWorkerSetInterface) error {
		_, err := c.Resume(ctx, "a", &batchv1alpha1.LeaderWorkerSetResume{}, metav1.CreateOptions{})
		return err
	},
}

func testGroupActionPermissions(t *testing.T, s *groupSets) {
	set := s.createGroups(t, "a", "v1")
	for permitted, call := range groupCalls {
		name := "groups-" + permitted
		s.permit(t, name, rbacv1.PolicyRule{APIGroups: []string{"leaderworkerset.x-k8s.io"}, Resources: []string{"leaderworkersets/" + permitted}, Verbs: []string{"create"}})
		user := s.asUser(t, name)
		framework.Eventually(t, "the permission is known", func(ctx context.Context) error {
			if err := call(ctx, user); apierrors.IsForbidden(err) {
				return err
			}
			return nil
		})
		for other, call := range groupCalls {
			want := fmt.Sprintf(`cannot create resource "leaderworkersets/%s" in API group "leaderworkerset.x-k8s.io"`, other)
			if err := call(t.Context(), user); other != permitted && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s by who may only %s: %v", other, permitted, err)
			}
		}
		if _, err := user.Update(t.Context(), set, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("an edit by who may only %s: %v", permitted, err)
		}
		if _, err := user.UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("an edit of the status by who may only %s: %v", permitted, err)
		}
	}
}
