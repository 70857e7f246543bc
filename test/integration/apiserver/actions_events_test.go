// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestEventsOfActions covers what users of the main cluster see of actions.
func TestEventsOfActions(t *testing.T) {
	tier.OnRequest(t, "waits for events")
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"each action is an event that names its user":        testEventOfEachAction,
		"two users who restart a set are both named":         testEventsOfTwoUsers,
		"what changes nothing is no event":                   testNoEvent,
		"many restarts of one attempt at once are one event": testEventOfConcurrentRestarts,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, plane.Config)) })
	}
}

// as returns a client for the namespace with the rights and the name of a user.
func (e *env) as(t *testing.T, name string) typedv1alpha2.JobSetInterface {
	t.Helper()
	user, err := plane.AddUser(name, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return clientset(t, user.Config()).JobSets(e.namespace)
}

// events returns those of the server in the order of their times.
func (e *env) events(ctx context.Context) ([]eventsv1.Event, error) {
	list, err := plane.Kube.EventsV1().Events(e.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=jobset-apiserver"})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items, nil
}

// awaitNotes waits until the notes of the events are these.
func (e *env) awaitNotes(t *testing.T, want ...string) []eventsv1.Event {
	t.Helper()
	var events []eventsv1.Event
	framework.Eventually(t, "the events are there", func(ctx context.Context) error {
		var err error
		if events, err = e.events(ctx); err != nil {
			return err
		}
		notes := make([]string, len(events))
		for i := range events {
			notes[i] = events[i].Note
		}
		if diff := cmp.Diff(want, notes); diff != "" {
			return fmt.Errorf("notes (-want +got):\n%s", diff)
		}
		return nil
	})
	return events
}

func testEventOfEachAction(t *testing.T, e *env) {
	js := e.running(t, "a", func(js *jobsetv1alpha2.JobSet) { js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1} })
	ada, ctx, options := e.as(t, "ada"), t.Context(), metav1.CreateOptions{}
	because := func(reason string) batchv1alpha1.JobSetActionSpec {
		return batchv1alpha1.JobSetActionSpec{Reason: reason}
	}
	job := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{
		Scope: batchv1alpha1.RestartScopeJob, ReplicatedJob: "workers", JobIndex: ptr.To[int32](1),
	}}
	var errs [6]error
	_, errs[0] = ada.Restart(ctx, "a", &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Reason: "node-3 is slow"}}, options)
	_, errs[1] = ada.Restart(ctx, "a", job, options)
	_, errs[2] = ada.Suspend(ctx, "a", &batchv1alpha1.JobSetSuspend{Spec: because("the rack moves")}, options)
	_, errs[3] = ada.Resume(ctx, "a", &batchv1alpha1.JobSetResume{Spec: because("it has moved")}, options)
	_, errs[4] = ada.Cancel(ctx, "a", &batchv1alpha1.JobSetCancel{Spec: because(strings.Repeat("語", 1024))}, options)
	_, errs[5] = ada.Retry(ctx, "a", &batchv1alpha1.JobSetRetry{Spec: batchv1alpha1.JobSetRetrySpec{MaxRestarts: 2}}, options)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	events := e.awaitNotes(t,
		"ada asked to restart the set: node-3 is slow (attempt 2)",
		"ada asked to restart job a-workers-1 (attempt 3)",
		"ada asked to suspend the set: the rack moves (attempt 3 ended)",
		"ada asked to resume the set: it has moved (attempt 4)",
		"ada asked to cancel the set: "+strings.Repeat("語", 324)+"... (attempt 4 ended)",
		"ada asked to retry the set with 2 more restarts (attempt 5)",
	)
	actions := [][2]string{
		{"restart", "RestartRequested"}, {"restart", "RestartRequested"}, {"suspend", "SuspendRequested"},
		{"resume", "ResumeRequested"}, {"cancel", "CancelRequested"}, {"retry", "RetryRequested"},
	}
	regarding := corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: e.namespace, Name: "a", UID: js.UID}
	for i, event := range events {
		if diff := cmp.Diff(regarding, event.Regarding); diff != "" {
			t.Errorf("what the event is about (-want +got):\n%s", diff)
		}
		if got := [2]string{event.Action, event.Reason}; got != actions[i] || event.Type != corev1.EventTypeNormal || event.Series != nil {
			t.Errorf("got %v, %s, %v", got, event.Type, event.Series)
		}
	}
}

func testEventsOfTwoUsers(t *testing.T, e *env) {
	e.running(t, "a")
	for _, user := range []string{"ada", "bob"} {
		if _, err := e.as(t, user).Restart(t.Context(), "a", forcedRestart(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.awaitNotes(t, "ada asked to restart the set (attempt 2)", "bob asked to restart the set (attempt 3)")
}

// testNoEvent ends with an action that is one: events are sent in order, so that no other can come after it.
func testNoEvent(t *testing.T, e *env) {
	e.running(t, "a")
	ada, ctx := e.as(t, "ada"), t.Context()
	options, dry := metav1.CreateOptions{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for name, act := range map[string]func() error{
		"a dry run": func() error {
			_, err := ada.Restart(ctx, "a", restartOf(1), dry)
			return err
		},
		"a resume of what runs": func() error {
			_, err := ada.Resume(ctx, "a", &batchv1alpha1.JobSetResume{}, options)
			return err
		},
	} {
		if err := act(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if _, err := ada.Retry(ctx, "a", &batchv1alpha1.JobSetRetry{}, options); !apierrors.IsConflict(err) {
		t.Fatalf("a retry of what runs: %v", err)
	}
	for range 3 {
		if _, err := ada.Restart(ctx, "a", restartOf(1), options); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := ada.Suspend(ctx, "a", &batchv1alpha1.JobSetSuspend{}, options); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := ada.Cancel(ctx, "a", &batchv1alpha1.JobSetCancel{}, options); err != nil {
			t.Fatal(err)
		}
	}
	e.running(t, "last")
	if _, err := ada.Restart(ctx, "last", restartOf(1), options); err != nil {
		t.Fatal(err)
	}
	e.awaitNotes(t, "ada asked to restart the set: stuck (attempt 2)", "ada asked to suspend the set (attempt 2 ended)",
		"ada asked to cancel the set", "ada asked to restart the set: stuck (attempt 2)")
}

func testEventOfConcurrentRestarts(t *testing.T, e *env) {
	const callers = 20
	e.running(t, "a")
	ada := e.as(t, "ada")
	errs := make(chan error, callers)
	for range callers {
		go func() {
			_, err := ada.Restart(t.Context(), "a", restartOf(1), metav1.CreateOptions{})
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	again := restartOf(2)
	if answer, err := ada.Restart(t.Context(), "a", again, metav1.CreateOptions{}); err != nil || answer.Status.Time != nil {
		t.Fatalf("a restart that joins another: %v, %+v", err, answer)
	}
	again.Spec.Force = true
	if _, err := ada.Restart(t.Context(), "a", again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.awaitNotes(t, "ada asked to restart the set: stuck (attempt 2)", "ada asked to restart the set: stuck (attempt 3)")
}

// TestActionsWithoutEvents: a server that may not send events carries actions out, and says once what it lacks.
func TestActionsWithoutEvents(t *testing.T) {
	tier.OnRequest(t, "waits for events")
	const name = "server-without-events"
	role, err := plane.Kube.RbacV1().ClusterRoles().Get(t.Context(), "jobset-apiserver", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, rule := range role.Rules {
		if !slices.Contains(rule.APIGroups, eventsv1.GroupName) {
			less.Rules = append(less.Rules, rule)
		}
	}
	if len(less.Rules) != len(role.Rules)-1 {
		t.Fatalf("the role must have one rule about events: %+v", role.Rules)
	}
	if _, err := plane.Kube.RbacV1().ClusterRoles().Create(t.Context(), less, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.Kubeconfig(name, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	complete := plane.ServerKubeconfig(t)
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+complete, "--authorization-kubeconfig="+complete)...)
	e := newEnv(t, server, server.Config(t))
	e.running(t, "a")
	for range 20 {
		if _, err := e.typed.Restart(t.Context(), "a", forcedRestart(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop(t)
	if events, err := e.events(t.Context()); err != nil || len(events) > 0 {
		t.Errorf("%v, %d events", err, len(events))
	}
	const line = "Events about actions are lost"
	if n := strings.Count(server.Log(), line); n != 1 || !strings.Contains(server.Log(), `cannot create resource \"events\"`) {
		t.Errorf("%d lines in the log:\n%s", n, server.Log())
	}
}

// TestEventsBeforeTheEnd checks that requests just before the end of a server still get their events.
func TestEventsBeforeTheEnd(t *testing.T) {
	tier.OnRequest(t, "waits for events")
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	e.running(t, "a")
	for range 20 {
		if _, err := e.typed.Restart(t.Context(), "a", forcedRestart(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop(t)
	if events, err := e.events(t.Context()); err != nil || len(events) != 20 {
		t.Errorf("%v, %d events, want 20", err, len(events))
	}
}
