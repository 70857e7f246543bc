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
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

func testSequenceDiscovery(t *testing.T, _ *sequences) {
	list, err := plane.Kube.Discovery().ServerResourcesForGroupVersion("batch.jobset-apiserver.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, resource := range list.APIResources {
		got = append(got, resource.Name)
		switch resource.Name {
		case "sequentialjobs":
			if resource.SingularName != "sequentialjob" || !slices.Equal(resource.ShortNames, []string{"sqj"}) || !slices.Equal(resource.Categories, []string{"all"}) || len(resource.Verbs) != 8 {
				t.Errorf("%+v", resource)
			}
		case "podreadinessgroups":
			if len(resource.ShortNames) > 0 || len(resource.Categories) > 0 || len(resource.Verbs) != 8 {
				t.Errorf("%+v", resource)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"podreadinessgroups", "podreadinessgroups/status", "sequentialjobs", "sequentialjobs/cancel", "sequentialjobs/restart", "sequentialjobs/resume",
		"sequentialjobs/retry", "sequentialjobs/status", "sequentialjobs/suspend",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func testSequenceExplain(t *testing.T, _ *sequences) {
	for field, words := range map[string][]string{
		"sqj":                                {"KIND:       SequentialJob", "spec", "status"},
		"sqj.spec":                           {"containers", "updateStrategy", "<[]SequentialJobStep>"},
		"sqj.spec.steps":                     {"steps run one after another", "container\t", "job\t", "jobSet\t", "-required-"},
		"sqj.spec.steps.jobSet.spec":         {"replicatedJobs", "failurePolicy"},
		"sqj.spec.updateStrategy.type":       {"Continue, Restart or Forbid", "ENUM:", "Continue\n", "Forbid\n", "Restart\n"},
		"sqj.status.progress":                {"completedIndices", "failureReason"},
		"podreadinessgroups.spec.readyWhen":  {"ENUM:", "Ready\n", "Running\n"},
		"sequentialjob.status.steps.message": {"why the child failed"},
	} {
		out, err := plane.Kubectl(t, "explain", field)
		for _, word := range words {
			if err != nil || !strings.Contains(out, word) {
				t.Errorf("explain %s lacks %q: %v\n%s", field, word, err, out)
			}
		}
	}
}

func testSequenceDelete(t *testing.T, s *sequences) {
	for i := range 6 {
		s.create(t, sequence(fmt.Sprintf("a%d", i), func(sj *batchv1alpha1.SequentialJob) { sj.Labels = map[string]string{"half": fmt.Sprint(i % 2)} }))
	}
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if err := s.typed.DeleteCollection(t.Context(), background, metav1.ListOptions{LabelSelector: "half=1"}); err != nil {
		t.Fatal(err)
	}
	if left, err := s.typed.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 3 {
		t.Errorf("%d are left, not 3: %v", len(left.Items), err)
	}
	// What the namespace controller does, which speaks protobuf.
	client, err := metadata.NewForConfig(metadata.ConfigFor(s.config))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sequentialjobs", "podreadinessgroups"} {
		resource := client.Resource(batchv1alpha1.SchemeGroupVersion.WithResource(name)).Namespace(s.namespace)
		if err := resource.DeleteCollection(t.Context(), background, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if list, err := resource.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
			t.Errorf("%d %s are left: %v", len(list.Items), name, err)
		}
	}
	// The finalizer of the controller keeps the object, and can be removed by a patch.
	s.create(t, sequence("kept", func(sj *batchv1alpha1.SequentialJob) { sj.Finalizers = []string{batchv1alpha1.SequentialJobFinalizer} }))
	if err := s.typed.Delete(t.Context(), "kept", background); err != nil {
		t.Fatal(err)
	}
	if sj, err := s.typed.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || sj.DeletionTimestamp == nil {
		t.Errorf("with a finalizer: %v, %+v", err, sj)
	}
	if _, err := s.typed.Patch(t.Context(), "kept", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := s.typed.Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the finalizer was removed: %v", err)
	}
}

func testSequenceQuota(t *testing.T, s *sequences) {
	const counted = "count/sequentialjobs.batch.jobset-apiserver.io"
	quotas := plane.Kube.CoreV1().ResourceQuotas(s.namespace)
	hard := corev1.ResourceList{counted: resource.MustParse("1")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The quota controller would do this; no controllers run here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse("1")}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the quota is enforced", func(ctx context.Context) error {
		_, err := s.typed.Create(ctx, sequence("a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: few, requested: "+counted+"=1") {
			return nil
		}
		return fmt.Errorf("creating it: %v", err)
	})
}

func testSequenceAudit(t *testing.T, s *sequences, log string) {
	s.create(t, sequence("audited"))
	event := auditEvent(t, log, "the creation", func(event *auditv1.Event) bool {
		return event.Verb == "create" && event.ObjectRef.Resource == "sequentialjobs" && event.ObjectRef.Name == "audited"
	})
	if !strings.Contains(string(event.RequestObject.Raw), `"image":"transform"`) {
		t.Errorf("the request is missing: %s", event.RequestObject.Raw)
	}
}

// testSequenceRoles asks what the roles of our manifests allow.
func testSequenceRoles(t *testing.T, s *sequences) {
	if out, err := plane.Kubectl(t, "apply", "--server-side", "-f", "artifacts/base/rbac/users.yaml"); err != nil {
		t.Fatal(out)
	}
	actions := []string{"create sequentialjobs/restart", "create sequentialjobs/suspend", "create sequentialjobs/resume", "create sequentialjobs/cancel", "create sequentialjobs/retry"}
	reads := []string{"get sequentialjobs", "watch sequentialjobs", "list podreadinessgroups"}
	writes := []string{"create sequentialjobs", "deletecollection sequentialjobs", "patch podreadinessgroups"}
	never := []string{"update sequentialjobs/status", "update podreadinessgroups/status"}
	for role, may := range map[string][]string{
		"jobset-view": append([]string{"get sequentialjobs/status"}, reads...), "jobset-edit": slices.Concat(writes, actions), "jobset-operator": slices.Concat(reads, actions),
	} {
		user := "user-of-" + role
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}
		if _, err := plane.Kube.RbacV1().RoleBindings(s.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, request := range slices.Concat(reads, writes, actions, never) {
			framework.Eventually(t, user+": "+request, func(ctx context.Context) error {
				allowed, err := s.allowed(ctx, user, request)
				if want := slices.Contains(may, request); err == nil && allowed != want {
					return fmt.Errorf("allowed is %t, want %t", allowed, want)
				}
				return err
			})
		}
	}
}

// allowed asks whether a user may do something in the namespace: a verb, and a resource that may have a subresource.
func (s *sequences) allowed(ctx context.Context, user, request string) (bool, error) {
	verb, name, _ := strings.Cut(request, " ")
	name, subresource, _ := strings.Cut(name, "/")
	review, err := plane.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: s.namespace, Verb: verb, Group: "batch.jobset-apiserver.io", Resource: name, Subresource: subresource,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
