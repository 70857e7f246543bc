// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

func TestAdmission(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	cases := map[string]func(*testing.T, *env){
		"nothing is created in a namespace that is missing or ends": testNamespaceLifecycle,
		"quota counts JobSets":                         testQuota,
		"a validating policy refuses":                  testValidatingPolicy,
		"a mutating policy changes":                    testMutatingPolicy,
		"webhooks change and refuse":                   testWebhooks,
		"a webhook that is gone blocks only its users": testWebhookFailure,
		"volume claims that exist must fit":            testVolumeClaims,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, server.Config(t))) })
	}
}

func testNamespaceLifecycle(t *testing.T, e *env) {
	client := clientset(t, e.config)
	if _, err := client.JobSets("missing").Create(t.Context(), jobSet("a"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in a missing namespace: %v", err)
	}
	before := e.create(t, jobSet("before"))
	if err := plane.Kube.CoreV1().Namespaces().Delete(t.Context(), e.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "creating is forbidden", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, jobSet("after"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		return fmt.Errorf("%v", err)
	})
	// What is there can still be changed, or it could never be cleaned up.
	before.Finalizers = []string{"example.com/done"}
	if _, err := e.typed.Update(t.Context(), before, metav1.UpdateOptions{}); err != nil {
		t.Errorf("updating in a terminating namespace: %v", err)
	}
}

func testQuota(t *testing.T, e *env) {
	const counted = "count/jobsets.jobset.x-k8s.io"
	quotas := plane.Kube.CoreV1().ResourceQuotas(e.namespace)
	hard := corev1.ResourceList{counted: resource.MustParse("2")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The quota controller would do this; no controllers run here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The first one must be counted, so the server must know the quota.
	framework.Eventually(t, "the quota is enforced", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, jobSet("a"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if used := e.used(t, counted); used != 1 {
			if err := e.typed.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				return err
			}
			return fmt.Errorf("%d are used", used)
		}
		return nil
	})
	if _, err := e.typed.Create(t.Context(), jobSet("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a dry run within the quota: %v", err)
	}
	e.create(t, jobSet("b"))
	_, err = e.typed.Create(t.Context(), jobSet("c"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: few, requested: count/jobsets.jobset.x-k8s.io=1, used: count/jobsets.jobset.x-k8s.io=2, limited: count/jobsets.jobset.x-k8s.io=2") {
		t.Errorf("beyond the quota: %v", err)
	}
	if used := e.used(t, counted); used != 2 {
		t.Errorf("%d are used, not 2", used)
	}
	js := e.get(t, "a")
	js.Spec.Suspend = ptr.To(true)
	if _, err := e.typed.Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Errorf("updating when the quota is used up: %v", err)
	}
}

func (e *env) used(t *testing.T, name corev1.ResourceName) int64 {
	t.Helper()
	quota, err := plane.Kube.CoreV1().ResourceQuotas(e.namespace).Get(t.Context(), "few", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := quota.Status.Used[name]
	return used.Value()
}

// here selects the namespace of the case, so that cases do not meet each other's policies.
func (e *env) here() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.namespace}}
}

func jobSetRule(operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{"jobset.x-k8s.io"}, APIVersions: []string{"v1alpha2"}, Resources: []string{"jobsets"},
	}}
}

func (e *env) match() *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: e.here(),
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			{RuleWithOperations: jobSetRule(admissionregistrationv1.Create, admissionregistrationv1.Update)},
		},
	}
}

func testValidatingPolicy(t *testing.T, e *env) {
	// The function quantity() is younger than our own version number: it is known only when the library knows which
	// Kubernetes it is.
	e.validatingPolicy(t, e.match(), "quantity('1Gi').isGreaterThan(quantity('1Mi')) && (!has(object.spec.suspend) || !object.spec.suspend)",
		"suspended JobSets are not wanted here")
	suspended := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	e.eventuallyRefused(t, jobSet("a", suspended), "suspended JobSets are not wanted here")
	e.create(t, jobSet("a"))
	js := e.get(t, "a")
	suspended(js)
	if _, err := e.typed.Update(t.Context(), js, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("updating against the policy: %v", err)
	}
}

// eventuallyRefused waits until creating the object is refused with the text.
func (e *env) eventuallyRefused(t *testing.T, js *jobsetv1alpha2.JobSet, text string) {
	t.Helper()
	framework.Eventually(t, "it is refused", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, js, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
}

// eventuallyLabeled waits until a new object gets the label.
func (e *env) eventuallyLabeled(t *testing.T, label string) {
	t.Helper()
	framework.Eventually(t, "it is labeled", func(ctx context.Context) error {
		js, err := e.typed.Create(ctx, jobSet("labeled"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && js.Labels[label] != "true" {
			err = fmt.Errorf("labels are %v", js.Labels)
		}
		return err
	})
}

func testMutatingPolicy(t *testing.T, e *env) {
	e.mutatingPolicy(t, e.match(),
		admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{
				Expression: `[JSONPatch{op: "add", path: "/metadata/labels", value: {"patched": "true"}}]`,
			},
		},
		admissionregistrationv1.Mutation{
			// Merges by the list types of our schema.
			PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
				Expression: `Object{metadata: Object.metadata{labels: {"mutated": string(object.metadata.labels.patched)}}}`,
			},
		})
	e.eventuallyLabeled(t, "mutated")
	e.create(t, jobSet("a"))
	if got := e.get(t, "a"); len(got.Spec.ReplicatedJobs) != 1 {
		t.Errorf("the mutated object is %+v", got)
	}
}
