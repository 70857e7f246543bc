// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// matchUpdates selects edits of JobSets in the namespace of the case.
func (e *env) matchUpdates() *admissionregistrationv1.MatchResources {
	match := e.match()
	match.ResourceRules[0].RuleWithOperations = jobSetRule(admissionregistrationv1.Update)
	return match
}

// wantRefusal returns an error unless the error contains the text.
func wantRefusal(err error, text string) error {
	if err == nil || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("got the error %v, want %q", err, text)
	}
	return nil
}

// testUpdatePolicy: a policy that names no action sees those that edit, with their user, what was and what is to be.
func testUpdatePolicy(t *testing.T, e *env) {
	e.running(t, "a")
	e.validatingPolicy(t, e.matchUpdates(), "request.userInfo.username != 'eve' || object.spec.?suspend.orValue(false) == oldObject.spec.?suspend.orValue(false)",
		"not by eve")
	eve, ctx := e.as(t, "eve"), t.Context()
	suspend := func(ctx context.Context, options metav1.CreateOptions) error {
		_, err := eve.Suspend(ctx, "a", &batchv1alpha1.JobSetSuspend{}, options)
		return err
	}
	want := fmt.Sprintf(`jobsets.jobset.x-k8s.io "a" is forbidden: ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: not by eve`, e.namespace)
	framework.Eventually(t, "a dry run is refused", func(ctx context.Context) error { return wantRefusal(suspend(ctx, dryRun), want) })
	if err := wantRefusal(suspend(ctx, metav1.CreateOptions{}), want); err != nil {
		t.Error(err)
	}
	if js := e.get(t, "a"); js.Spec.Suspend != nil || js.Generation != 1 || js.Status.Attempts[0].EndTime != nil {
		t.Errorf("a refused action left %+v", js)
	}
	if err := calls["restart"](ctx, eve, "a"); err != nil {
		t.Errorf("restart, which edits nothing: %v", err)
	}
	if err := calls["resume"](ctx, eve, "a"); err != nil {
		t.Errorf("resume, when there is nothing to resume: %v", err)
	}
	if err := calls["suspend"](ctx, e.as(t, "ada"), "a"); err != nil {
		t.Errorf("by another user: %v", err)
	}
	if err := wantRefusal(calls["resume"](ctx, eve, "a"), want); err != nil {
		t.Error(err)
	}
	if err := calls["cancel"](ctx, eve, "a"); err != nil {
		t.Errorf("cancel, which edits nothing: %v", err)
	}
}

// testUpdateWebhooks has a webhook label what is edited, and keep the set ada suspended.
func testUpdateWebhooks(t *testing.T, e *env) {
	e.running(t, "a")
	var dry atomic.Int32
	hook := newWebhook(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if ptr.Deref(request.DryRun, false) {
			dry.Add(1)
		}
		if request.SubResource != "" || request.Kind.Kind != "JobSet" || request.OldObject.Raw == nil {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no edit of a JobSet"}}
		}
		patch := `[{"op":"add","path":"/metadata/labels","value":{"by":"` + request.UserInfo.Username + `"}}]`
		if request.UserInfo.Username == "eve" {
			patch = `[{"op":"replace","path":"/spec/suspend","value":true}]`
		}
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	})
	configurations := plane.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.example.com", ClientConfig: hook.client(), NamespaceSelector: e.here(),
			Rules:       []admissionregistrationv1.RuleWithOperations{jobSetRule(admissionregistrationv1.Update)},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ada, eve := e.as(t, "ada"), e.as(t, "eve")
	framework.Eventually(t, "the webhook is called for a dry run", func(ctx context.Context) error {
		_, err := ada.Suspend(ctx, "a", &batchv1alpha1.JobSetSuspend{}, dryRun)
		if err == nil && dry.Load() == 0 {
			err = errors.New("it was not")
		}
		return err
	})
	if js := e.get(t, "a"); js.Labels != nil || js.Spec.Suspend != nil {
		t.Errorf("a dry run left %+v", js)
	}
	if err := calls["suspend"](t.Context(), ada, "a"); err != nil {
		t.Fatal(err)
	}
	if js := e.get(t, "a"); js.Labels["by"] != "ada" || !ptr.Deref(js.Spec.Suspend, false) || js.Generation != 2 || js.Status.Attempts[0].EndUser != "ada" {
		t.Errorf("the suspended set is %+v", js)
	}
	if err := wantRefusal(calls["resume"](t.Context(), eve, "a"), `jobsets.jobset.x-k8s.io "a" is forbidden: the action must change spec.suspend, `+
		"but a mutating webhook or policy for UPDATE of jobsets changed it back"); err != nil {
		t.Error(err)
	}
	if js := e.get(t, "a"); js.Generation != 2 || len(js.Status.Attempts) != 1 {
		t.Errorf("a reversed action left %+v", js)
	}
	configuration.Webhooks[0].ClientConfig.URL = ptr.To("https://127.0.0.1:1/")
	if _, err := configurations.Update(t.Context(), configuration, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "a webhook that is gone blocks", func(ctx context.Context) error {
		_, err := ada.Resume(ctx, "a", &batchv1alpha1.JobSetResume{}, dryRun)
		return wantRefusal(err, `failed calling webhook "mutate.example.com"`)
	})
	if err := calls["cancel"](t.Context(), ada, "a"); err != nil {
		t.Errorf("cancel while the webhook is gone: %v", err)
	}
}

// testRollbackPolicy: the policy of the documentation forbids an image that the set had.
func testRollbackPolicy(t *testing.T, e *env) {
	s := &groupSets{e, groupClient(t, e.config, e.namespace)}
	set := s.createGroups(t, "a", "v1", func(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](3) })
	s.keep(t, 1, set)
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "registry.example.com/v2"
	set, err := s.typed.Update(t.Context(), set, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.keep(t, 2, set)
	s.createGroups(t, "older", "v1")
	name := e.documentedPolicy(t, "images-of-groups")
	rollback := func(ctx context.Context) error {
		_, err := s.typed.Rollback(ctx, "a", &batchv1alpha1.LeaderWorkerSetRollback{}, dryRun)
		return err
	}
	framework.Eventually(t, "the rollback is refused", func(ctx context.Context) error {
		return wantRefusal(rollback(ctx), fmt.Sprintf(`leaderworkersets.leaderworkerset.x-k8s.io "a" is forbidden: ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' `+
			"denied request: images must be from registry.example.com", name))
	})
	if err := groupCalls["rollback"](t.Context(), s.typed); err == nil {
		t.Error("the rollback is accepted")
	}
	if now := s.read(t, "a"); now.Generation != set.Generation || now.Status.LastAction != nil {
		t.Errorf("a refused rollback left generation %d, last action %+v", now.Generation, now.Status.LastAction)
	}
	for _, name := range []string{"a", "older"} {
		if _, err := s.typed.Pause(t.Context(), name, &batchv1alpha1.LeaderWorkerSetPause{}, metav1.CreateOptions{}); err != nil {
			t.Errorf("a pause of %s: %v", name, err)
		}
	}
}

// testDocumentedPolicies: what the documentation says that its policies reject, and nothing else.
func testDocumentedPolicies(t *testing.T, e *env) {
	e.running(t, "a")
	e.running(t, "b")
	reasons, on := e.documentedPolicy(t, "restarts-need-reasons"), e.documentedPolicy(t, "changes-by-on-call")
	ctx, admin := t.Context(), e.as(t, "ada")
	framework.Eventually(t, "a restart without a reason is refused", func(ctx context.Context) error {
		_, err := admin.Restart(ctx, "a", &batchv1alpha1.JobSetRestart{}, dryRun)
		return wantRefusal(err, `jobsets.jobset.x-k8s.io "a" is forbidden: ValidatingAdmissionPolicy '`+reasons+`' with binding '`+reasons+`' denied request: give a reason`)
	})
	dev, onCall := e.member(t, "dev", "developers"), e.member(t, "olga", "on-call")
	denied := "denied request: only the group on-call may change JobSets"
	framework.Eventually(t, "a cancel by another group is refused", func(ctx context.Context) error {
		_, err := dev.Cancel(ctx, "a", &batchv1alpha1.JobSetCancel{}, dryRun)
		return wantRefusal(err, "ValidatingAdmissionPolicy '"+on+"' with binding '"+on+"' "+denied)
	})
	for _, action := range []string{"suspend", "cancel"} {
		if err := wantRefusal(calls[action](ctx, dev, "a"), denied); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
	if _, err := dev.Restart(ctx, "a", restartOf(1), dryRun); wantRefusal(err, denied) != nil {
		t.Errorf("restart: %v", err)
	}
	framework.Eventually(t, "the permission of on-call is known", func(ctx context.Context) error {
		_, err := onCall.Suspend(ctx, "b", &batchv1alpha1.JobSetSuspend{}, dryRun)
		return err
	})
	for _, action := range []string{"suspend", "resume", "cancel"} {
		if err := calls[action](ctx, onCall, "b"); err != nil {
			t.Errorf("%s by on-call: %v", action, err)
		}
	}
	if err := wantRefusal(calls["retry"](ctx, dev, "b"), denied); err != nil {
		t.Errorf("retry: %v", err)
	}
}

// member returns a client for the namespace of a user of the group who may act on JobSets.
func (e *env) member(t *testing.T, name, group string) typedv1alpha2.JobSetInterface {
	t.Helper()
	user, err := plane.AddUser(name, group)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for action := range calls {
		actions = append(actions, "jobsets/"+action)
	}
	e.permit(t, name, rbacv1.PolicyRule{APIGroups: []string{"jobset.x-k8s.io"}, Resources: actions, Verbs: []string{"create"}})
	return clientset(t, user.Config()).JobSets(e.namespace)
}

// documentedPolicy creates a policy of docs/actions.md for the namespace of the case, and returns the name that it has here.
func (e *env) documentedPolicy(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "    apiVersion: admissionregistration.k8s.io/v1\n    kind: ValidatingAdmissionPolicy\n"
	_, rest, found := strings.Cut(string(page), head+"    metadata: {name: "+name+"}\n")
	text, _, _ := strings.Cut(rest, "\n\n")
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(text), &policy); err != nil || !found {
		t.Fatalf("no policy %s: %v", name, err)
	}
	policy.Name = name + "-" + e.namespace
	client := plane.Kube.AdmissionregistrationV1()
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), &policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: e.here()},
		},
	}
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return policy.Name
}
