// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	typedgroups "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// groupSets reaches LeaderWorkerSets of a namespace.
type groupSets struct {
	*env
	typed typedgroups.LeaderWorkerSetInterface
}

// TestActionsOnGroups covers restart, rollback, pause and resume of LeaderWorkerSets as users reach them, through the aggregation layer.
func TestActionsOnGroups(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *groupSets){
		"each action is stored, answered and an event":  testGroupActionsInTurn,
		"a rollback restores a revision":                testGroupRollback,
		"a dry run answers and stores nothing":          testGroupDryRun,
		"an action needs no valid rest of the spec":     testActionOnScaledSet,
		"bad requests are refused with their field":     testBadGroupActions,
		"each action is permitted by itself":            testGroupActionPermissions,
		"edits of paused record their user":             testPauseEdit,
		"a status update does not change what was done": testLastActionIsKept,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, server, plane.Config)
			test(t, &groupSets{e, groupClient(t, plane.Config, e.namespace)})
		})
	}
}

func groupClient(t *testing.T, config *rest.Config, namespace string) typedgroups.LeaderWorkerSetInterface {
	t.Helper()
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients.LeaderworkersetV1().LeaderWorkerSets(namespace)
}

// createGroups stores a set of four groups of two pods with the image.
func (s *groupSets) createGroups(t *testing.T, name, image string, change ...func(*leaderworkersetv1.LeaderWorkerSet)) *leaderworkersetv1.LeaderWorkerSet {
	t.Helper()
	set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Replicas, set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](4), ptr.To[int32](2)
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{{Name: "serve", Image: image}}
	for _, f := range change {
		f(set)
	}
	created, err := s.typed.Create(t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (s *groupSets) read(t *testing.T, name string) *leaderworkersetv1.LeaderWorkerSet {
	t.Helper()
	set, err := s.typed.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// keep stores the revision that the controller keeps of a set.
func (s *groupSets) keep(t *testing.T, number int64, set *leaderworkersetv1.LeaderWorkerSet) {
	t.Helper()
	payload, err := helper.RevisionPayload(set)
	if err != nil {
		t.Fatal(err)
	}
	key := helper.RevisionKey(payload)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: helper.RevisionName(set.Name, key, number), Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.RevisionKey: key},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))},
		},
		Revision: number, Data: runtime.RawExtension{Raw: payload},
	}
	if _, err := plane.Kube.AppsV1().ControllerRevisions(s.namespace).Create(t.Context(), revision, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *groupSets) asUser(t *testing.T, name string, groups ...string) typedgroups.LeaderWorkerSetInterface {
	t.Helper()
	user, err := plane.AddUser(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return groupClient(t, user.Config(), s.namespace)
}

func testGroupActionsInTurn(t *testing.T, s *groupSets) {
	before := s.createGroups(t, "a", "v1")
	s.keep(t, 1, before)
	ada, ctx, options := s.asUser(t, "ada", "system:masters"), t.Context(), metav1.CreateOptions{}
	check := func(answer batchv1alpha1.LeaderWorkerSetActionStatus, err error, message string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		last := s.read(t, "a").Status.LastAction
		if answer.UID != before.UID || answer.User != "ada" || answer.Message != message || last == nil || !last.Time.Equal(answer.Time) || last.User != "ada" {
			t.Errorf("the answer is %+v, the last action %+v, want the message %q", answer, last, message)
		}
	}
	one, err := ada.Restart(ctx, "a", &batchv1alpha1.LeaderWorkerSetRestart{Spec: batchv1alpha1.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](3), Reason: "stuck"}}, options)
	check(one.Status, err, "the restart of group 3 was requested")
	if r := s.read(t, "a").Status.Restart; r == nil || cmp.Diff([]int32{3}, r.Groups) != "" || r.All || r.Found {
		t.Errorf("the restart is %+v", r)
	}
	again, err := ada.Restart(ctx, "a", &batchv1alpha1.LeaderWorkerSetRestart{Spec: batchv1alpha1.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](3)}}, options)
	if err != nil || again.Status.Time != nil || !strings.HasSuffix(again.Status.Message, "is not complete; not restarted again") {
		t.Errorf("the second request got %+v, %v", again.Status, err)
	}
	all, err := ada.Restart(ctx, "a", &batchv1alpha1.LeaderWorkerSetRestart{}, options)
	check(all.Status, err, "the restart of all groups was requested")
	paused, err := ada.Pause(ctx, "a", &batchv1alpha1.LeaderWorkerSetPause{Spec: batchv1alpha1.LeaderWorkerSetActionSpec{Reason: "freeze"}}, options)
	check(paused.Status, err, "rolling updates were paused")
	resumed, err := ada.Resume(ctx, "a", &batchv1alpha1.LeaderWorkerSetResume{}, options)
	check(resumed.Status, err, "rolling updates were resumed")
	after := s.read(t, "a")
	if after.Generation != 3 || ptr.Deref(after.Spec.Paused, true) {
		t.Errorf("generation %d, paused %v", after.Generation, after.Spec.Paused)
	}
	if diff := cmp.Diff(before.ManagedFields, after.ManagedFields); diff != "" {
		t.Errorf("managed fields (-before +after):\n%s", diff)
	}
	s.awaitNotes(t, "ada asked to restart group 3: stuck", "ada asked to restart all groups", "ada asked to pause rolling updates: freeze", "ada asked to resume rolling updates")
}

func testGroupRollback(t *testing.T, s *groupSets) {
	set := s.createGroups(t, "a", "v1", func(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](3) })
	s.keep(t, 1, set)
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "v2"
	set.Spec.Replicas, set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](5), ptr.To[int32](7)
	set, err := s.typed.Update(t.Context(), set, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.keep(t, 2, set)
	rollback := func(revision int64) (*batchv1alpha1.LeaderWorkerSetRollback, error) {
		return s.asUser(t, "ada", "system:masters").Rollback(t.Context(), "a", &batchv1alpha1.LeaderWorkerSetRollback{
			Spec: batchv1alpha1.LeaderWorkerSetRollbackSpec{ToRevision: revision, Reason: "slow"},
		}, metav1.CreateOptions{})
	}
	got, err := rollback(0)
	if err != nil || got.Status.Revision != 1 || got.Status.Message != "the LeaderWorkerSet was rolled back to revision 1" {
		t.Fatalf("the answer is %+v, %v", got, err)
	}
	after := s.read(t, "a")
	template := &after.Spec.LeaderWorkerTemplate
	if template.WorkerTemplate.Spec.Containers[0].Image != "v1" || *after.Spec.Replicas != 5 || *template.MaxGroupRestarts != 7 || after.Generation != 3 {
		t.Errorf("generation %d, spec %+v", after.Generation, after.Spec)
	}
	if last := after.Status.LastAction; last == nil || last.Action != leaderworkersetv1.ActionRollback || last.Revision != 1 || last.Reason != "slow" {
		t.Errorf("the last action is %+v", last)
	}
	if again, err := rollback(0); err != nil || again.Status.Time != nil || !strings.Contains(again.Status.Message, "has not begun; not rolled back again") {
		t.Errorf("the second request got %+v, %v", again, err)
	}
	if _, err := rollback(9); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.toRevision: Invalid value: 9: must be the number of a revision of the LeaderWorkerSet: 1, 2 exist; spec.revisionHistoryLimit is 3") {
		t.Errorf("a number that does not exist: %v", err)
	}
	s.awaitNotes(t, "ada asked to roll the set back to revision 1: slow")
}

func testGroupDryRun(t *testing.T, s *groupSets) {
	before := s.createGroups(t, "a", "v1")
	got, err := s.typed.Pause(t.Context(), "a", &batchv1alpha1.LeaderWorkerSetPause{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || got.Status.Message != "rolling updates were paused" {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	if diff := cmp.Diff(before, s.read(t, "a")); diff != "" {
		t.Errorf("the set changed (-before +after):\n%s", diff)
	}
}

// testActionOnScaledSet scales a set to where its rollout strategy would be refused in an edit. It can still be acted on.
func testActionOnScaledSet(t *testing.T, s *groupSets) {
	s.createGroups(t, "a", "v1", func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.Replicas = ptr.To[int32](10)
		set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{MaxUnavailable: ptr.To(intstr.FromString("10%"))}
	})
	scale, err := s.typed.GetScale(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 5
	if _, err := s.typed.UpdateScale(t.Context(), "a", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.typed.Restart(t.Context(), "a", &batchv1alpha1.LeaderWorkerSetRestart{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("restart: %v", err)
	}
	if _, err := s.typed.Pause(t.Context(), "a", &batchv1alpha1.LeaderWorkerSetPause{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("pause: %v", err)
	}
}

func testPauseEdit(t *testing.T, s *groupSets) {
	s.createGroups(t, "a", "v1")
	stored, err := s.asUser(t, "eve", "system:masters").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if last := stored.Status.LastAction; last == nil || last.Action != leaderworkersetv1.ActionPause || last.User != "eve" {
		t.Errorf("the last action is %+v", last)
	}
}

func testLastActionIsKept(t *testing.T, s *groupSets) {
	s.createGroups(t, "a", "v1")
	if err := groupCalls["pause"](t.Context(), s.typed); err != nil {
		t.Fatal(err)
	}
	set := s.read(t, "a")
	set.Status.LastAction, set.Status.ReadyReplicas = nil, 1
	stored, err := s.typed.UpdateStatus(t.Context(), set, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stored.Status.LastAction == nil || stored.Status.ReadyReplicas != 1 {
		t.Errorf("the status is %+v", stored.Status)
	}
}
