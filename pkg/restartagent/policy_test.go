// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobset-apiserver/jobset-apiserver/test/policies"
)

// TestPolicyAllowsOnlyTheOwnPod evaluates the policy for tokens that were issued for the pod, for another one and for none.
func TestPolicyAllowsOnlyTheOwnPod(t *testing.T) {
	policy := policies.Read(t, "../../artifacts/examples/in-place-restart/admission-policy.yaml")
	const account = "system:serviceaccount:default:" + programName
	const bound = "the restart agent must have a token that was issued for its pod: use the one that kubelet mounts, and none of a Secret or of kubectl create token"
	for name, c := range map[string]struct {
		user  string
		extra map[string][]string
		want  string
	}{
		"a token for the pod":                 {account, map[string][]string{"authentication.kubernetes.io/pod-name": {"own"}}, ""},
		"a token for another pod":             {account, map[string][]string{"authentication.kubernetes.io/pod-name": {"other"}}, "the restart agent may only update its own pod"},
		"a token for no pod":                  {account, nil, bound},
		"a token for a node":                  {account, map[string][]string{"authentication.kubernetes.io/node-name": {"own"}}, bound},
		"a token for a pod without a name":    {account, map[string][]string{"authentication.kubernetes.io/pod-name": {}}, bound},
		"another account, a token for no pod": {"system:serviceaccount:default:other", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "default"}}
			after := before.DeepCopy()
			after.Annotations = map[string]string{attemptKey: "1"}
			kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
			attributes := admission.NewAttributesRecord(after, before, kind, "default", "own", resource, "", admission.Update, &metav1.UpdateOptions{}, false,
				&user.DefaultInfo{Name: c.user, Extra: c.extra})
			if message := policy.Refuses(t, attributes); message != c.want {
				t.Errorf("the policy says %q, want %q", message, c.want)
			}
		})
	}
}
