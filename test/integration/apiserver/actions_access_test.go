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
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestAccessToActions covers who may do what: each action is a resource of its own to authorization, admission and audit.
func TestAccessToActions(t *testing.T) {
	tier.Safety(t)
	log, flags := auditFlags(t)
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), flags...)...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"each action of each set is permitted by itself":   testActionPermissions,
		"a policy sees an action as what it is":            testActionPolicy,
		"a mutating policy changes an action":              testActionMutation,
		"webhooks see and change an action":                testActionWebhooks,
		"a policy for updates holds for actions that edit": testUpdatePolicy,
		"webhooks for updates change and reverse actions":  testUpdateWebhooks,
		"a rollback passes the policies of the set":        testRollbackPolicy,
		"the documented policies reject what they name":    testDocumentedPolicies,
		"an action is on record":                           func(t *testing.T, e *env) { testActionAudit(t, e, log) },
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, plane.Config)) })
	}
}

// calls are all actions in their plainest form.
var calls = map[string]func(context.Context, typedv1alpha2.JobSetInterface, string) error{
	"restart": func(ctx context.Context, c typedv1alpha2.JobSetInterface, name string) error {
		_, err := c.Restart(ctx, name, &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{})
		return err
	},
	"suspend": func(ctx context.Context, c typedv1alpha2.JobSetInterface, name string) error {
		_, err := c.Suspend(ctx, name, &batchv1alpha1.JobSetSuspend{}, metav1.CreateOptions{})
		return err
	},
	"resume": func(ctx context.Context, c typedv1alpha2.JobSetInterface, name string) error {
		_, err := c.Resume(ctx, name, &batchv1alpha1.JobSetResume{}, metav1.CreateOptions{})
		return err
	},
	"cancel": func(ctx context.Context, c typedv1alpha2.JobSetInterface, name string) error {
		_, err := c.Cancel(ctx, name, &batchv1alpha1.JobSetCancel{}, metav1.CreateOptions{})
		return err
	},
	"retry": func(ctx context.Context, c typedv1alpha2.JobSetInterface, name string) error {
		_, err := c.Retry(ctx, name, &batchv1alpha1.JobSetRetry{}, metav1.CreateOptions{})
		return err
	},
}

// order is one in which every action succeeds.
var order = []string{"restart", "suspend", "resume", "cancel", "retry"}

func testActionPermissions(t *testing.T, e *env) {
	for _, permitted := range order {
		t.Run(permitted, func(t *testing.T) {
			e := newEnv(t, e.server, e.config)
			e.running(t, "mine")
			e.running(t, "other")
			name := "operator-" + permitted
			e.permit(t, name, rbacv1.PolicyRule{
				APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets/" + permitted}, ResourceNames: []string{"mine"}, Verbs: []string{"create"},
			})
			user, err := plane.AddUser(name)
			if err != nil {
				t.Fatal(err)
			}
			client := clientset(t, user.Config()).JobSets(e.namespace)
			framework.Eventually(t, "the permission is known", func(ctx context.Context) error {
				if err := calls[permitted](ctx, client, "mine"); apierrors.IsForbidden(err) {
					return err
				}
				return nil
			})
			for action, act := range calls {
				want := fmt.Sprintf(`User %q cannot create resource "jobsets/%s" in API group "jobset.x-k8s.io" in the namespace %q`, name, action, e.namespace)
				if err := act(t.Context(), client, "other"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s of another set: %v", action, err)
				}
				if err := act(t.Context(), client, "mine"); action != permitted && !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v", action, err)
				}
			}
			js := e.get(t, "mine")
			if _, err := client.Update(t.Context(), js, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("editing: %v", err)
			}
			if _, err := client.UpdateStatus(t.Context(), js, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("editing the status: %v", err)
			}
		})
	}
}

// permit gives a user a rule in the namespace.
func (e *env) permit(t *testing.T, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := plane.Kube.RbacV1().Roles(e.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	if _, err := plane.Kube.RbacV1().RoleBindings(e.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testActionAudit(t *testing.T, e *env, log string) {
	user, err := plane.AddUser("erin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e.running(t, "audited")
	client := clientset(t, user.Config()).JobSets(e.namespace)
	for _, action := range order {
		if err := calls[action](t.Context(), client, "audited"); err != nil {
			t.Fatalf("%s: %v", action, err)
		}
	}
	for _, action := range order {
		event := auditEvent(t, log, action, func(event *auditv1.Event) bool {
			return event.User.Username == "erin" && event.ObjectRef.Subresource == action
		})
		if event.Verb != "create" || event.ObjectRef.Resource != "jobsets" || event.ObjectRef.Name != "audited" ||
			!strings.Contains(string(event.RequestObject.Raw), actionKinds[action]) || !strings.Contains(string(event.ResponseObject.Raw), "the JobSet ") {
			t.Errorf("the event is %+v", event)
		}
	}
}
