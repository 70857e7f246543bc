// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// asAgent returns a client with the service account of agents, and a token that was issued for a pod, if there is one.
func (e *env) asAgent(pod string) kubernetes.Interface {
	e.Helper()
	config, err := shared.Config()
	if err != nil {
		e.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + e.namespace + ":jobset-restart-agent", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	if pod != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {pod}}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.Fatal(err)
	}
	return client
}

// TestPolicyOfTheAgent tries what the service account of agents may do with pods, by its role and by the policy.
func TestPolicyOfTheAgent(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	for _, name := range []string{"own", "other"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"keep": "1"}, Labels: map[string]string{"keep": "1"}}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"jobset-tests/none": ""}, Containers: []corev1.Container{{Name: "main", Image: localcluster.ProgramImage}},
		}}
		framework.Eventually(t, "the service account of the namespace exists", func(ctx context.Context) error {
			_, err := core.CoreV1().Pods(e.namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	const attempt = "jobset.sigs.k8s.io/in-place-restart-attempt"
	agent := e.asAgent("own").CoreV1().Pods(e.namespace)
	patch := func(ctx context.Context, pod, body string) error {
		_, err := agent.Patch(ctx, pod, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	// A policy has an effect a moment after it was created, and a role too. Until then the patch succeeds, so that each
	// attempt has a value of its own: one that is there already would change nothing, which is allowed.
	attempts := 0
	framework.Eventually(t, "the policy is in effect", func(ctx context.Context) error {
		attempts++
		if err := patch(ctx, "own", fmt.Sprintf(`{"metadata":{"annotations":{"before":"%d"}}}`, attempts)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "the restart agent") {
			return fmt.Errorf("another annotation: %v", err)
		}
		return nil
	})
	for name, tc := range map[string]struct{ pod, body, want string }{
		"the attempt":         {"own", `{"metadata":{"annotations":{"` + attempt + `":"0"}}}`, ""},
		"the next attempt":    {"own", `{"metadata":{"annotations":{"` + attempt + `":"2147483647"}}}`, ""},
		"another pod":         {"other", `{"metadata":{"annotations":{"` + attempt + `":"0"}}}`, "may only update its own pod"},
		"an attempt of words": {"own", `{"metadata":{"annotations":{"` + attempt + `":"next"}}}`, "must set the annotation " + attempt + " to a number"},
		"more annotations":    {"own", `{"metadata":{"annotations":{"` + attempt + `":"0","else":"1"}}}`, "may change no annotation but " + attempt},
		"fewer annotations":   {"own", `{"metadata":{"annotations":{"` + attempt + `":"0","keep":null}}}`, "may change no annotation but " + attempt},
		"a label":             {"own", `{"metadata":{"annotations":{"` + attempt + `":"0"},"labels":{"keep":"2"}}}`, "may change nothing of a pod but one annotation"},
		"a finalizer":         {"own", `{"metadata":{"annotations":{"` + attempt + `":"0"},"finalizers":["a.b/c"]}}`, "may change nothing of a pod but one annotation"},
		"a deadline":          {"own", `{"metadata":{"annotations":{"` + attempt + `":"0"}},"spec":{"activeDeadlineSeconds":5}}`, "may change nothing of a pod but one annotation"},
	} {
		err := patch(t.Context(), tc.pod, tc.body)
		if (err == nil) != (tc.want == "") || tc.want != "" && !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	_, err := e.asAgent("").CoreV1().Pods(e.namespace).Patch(t.Context(), "own", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+attempt+`":"1"}}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "must have a token that was issued for its pod") {
		t.Errorf("a token without a pod: %v", err)
	}
	if err := agent.Delete(t.Context(), "own", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deletion: %v", err)
	}
	if _, err := agent.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list: %v", err)
	}
}
