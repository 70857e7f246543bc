// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestManagers(t *testing.T) {
	const argo = "are reconciled by Argo CD: it is refused while writes are, and tries again"
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                []string
	}{
		"users alone": {map[string]string{"app": "x"}, nil, nil},
		"Argo CD":     {map[string]string{"argocd.argoproj.io/instance": "a"}, map[string]string{"argocd.argoproj.io/tracking-id": "a"}, []string{argo}},
		"Flux":        {map[string]string{"kustomize.toolkit.fluxcd.io/name": "a"}, nil, []string{"are reconciled by Flux: it is refused while writes are, and tries again"}},
		"Helm, Kueue": {
			map[string]string{"kueue.x-k8s.io/queue-name": "q"}, map[string]string{"meta.helm.sh/release-name": "r"},
			[]string{"belong to Helm releases", "are in queues of Kueue: it admits none of them while writes are refused"},
		},
	} {
		if diff := cmp.Diff(tc.want, managers(tc.labels, tc.annotations)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReport checks what a dry run says about permissions and controllers.
func TestReport(t *testing.T) {
	f := newFixture(t)
	labels := map[string]string{"control-plane": "manager"}
	for _, object := range []runtime.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "up", Name: "manager", Annotations: map[string]string{"meta.helm.sh/release-name": "jobset"}},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "example.com/manager:v1"}}}}},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "up", Name: "hooks"}, Spec: corev1.ServiceSpec{Selector: labels}},
		validatingHook("v", "hooks", rules([2]string{"jobset.x-k8s.io", "jobsets"})),
	} {
		if err := f.kube.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	f.kube.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Verb != "patch" && asked.Subresource == ""
		return true, review, nil
	})
	m := &mover{kube: f.kube, out: &f.out, subjects: subjects[:1]}
	if err := m.reportPermissions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.reportControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `You are not allowed to patch apiservices.apiregistration.k8s.io: ask an administrator of the cluster
You are not allowed to get deployments/scale.apps: ask an administrator of the cluster
You are not allowed to update deployments/scale.apps: ask an administrator of the cluster
You are not allowed to patch services: ask an administrator of the cluster
Would save and delete the validating webhook configuration v
Would scale Deployment up/manager (example.com/manager:v1) to 0: it belongs to the Helm release jobset, whose next upgrade would start it again
`
	if diff := cmp.Diff(want, f.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReportDuringMigration checks that a dry run leaves alone what a migration has begun.
func TestReportDuringMigration(t *testing.T) {
	f := newFixture(t)
	if err := (&Journal{ID: "abc", Direction: ToCRD}).write(t.Context(), f.kube); err != nil {
		t.Fatal(err)
	}
	err := (&mover{kube: f.kube, out: &f.out}).report(t.Context(), ToServer)
	if want := "migration abc to-crd has begun and has not ended: run kubectl jobset migrate status"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
