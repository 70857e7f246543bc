// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// matchGroups selects writes of the kind, or of a subresource, in the namespace of the case.
func (g *groupEnv) matchGroups(resources string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: g.here(),
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{g.resource.Group}, APIVersions: []string{"v1"}, Resources: []string{resources}},
		}}},
	}
}

func testGroupPolicy(t *testing.T, g *groupEnv) {
	const message = "must have the label team"
	g.make(t, "before")
	g.validatingPolicy(t, g.matchGroups(g.resource.Resource), "has(object.metadata.labels) && 'team' in object.metadata.labels", message)
	framework.Eventually(t, "it is refused", func(ctx context.Context) error {
		_, err := g.objects.Create(ctx, object(t, g.manifest, "a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if _, err := g.objects.Patch(t.Context(), "before", types.MergePatchType, []byte(g.change), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), message) {
		t.Errorf("a change against the policy: %v", err)
	}
	labeled := object(t, g.manifest, "a")
	labeled.SetLabels(map[string]string{"team": "a"})
	if _, err := g.objects.Create(t.Context(), labeled, metav1.CreateOptions{}); err != nil {
		t.Errorf("by the policy: %v", err)
	}
	// The policy is about the main resource: what the controller writes goes on.
	if _, err := g.objects.Patch(t.Context(), "before", types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("the status: %v", err)
	}
}

func testScalePolicy(t *testing.T, g *groupEnv) {
	const message = "must have at most 3 groups"
	scale := func(ctx context.Context, replicas int) error {
		body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		_, err := g.objects.Patch(ctx, "a", types.MergePatchType, body, metav1.PatchOptions{}, "scale")
		return err
	}
	g.make(t, "a")
	if !g.scale {
		if err := scale(t.Context(), 1); !apierrors.IsNotFound(err) {
			t.Errorf("a scale that does not exist: %v", err)
		}
		return
	}
	g.validatingPolicy(t, g.matchGroups(g.resource.Resource+"/scale"), "object.kind == 'Scale' && object.spec.replicas <= 3", message)
	framework.Eventually(t, "it is refused", func(ctx context.Context) error {
		if err := scale(ctx, 4); err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if err := scale(t.Context(), 3); err != nil {
		t.Errorf("by the policy: %v", err)
	}
}
