// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func TestRefusedCreations(t *testing.T) {
	terminating := apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errRefused)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), "etl-0",
		field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image"), "")})
	for name, tc := range map[string]struct {
		err     error
		want    string
		wantErr bool
	}{
		"a quota that is used up":    {apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New("exceeded quota: q")), "ResourcesUnavailable QuotaExceeded", true},
		"an API that fails":          {apierrors.NewInternalError(errRefused), "Failed ReconciliationError", true},
		"an API without an answer":   {errRefused, "Failed ReconciliationError", true},
		"an API that wants patience": {apierrors.NewTooManyRequests("later", 1), "", true},
		"an invalid Job":             {invalid, "Available JobCreationFailed", true},
		"a missing permission": {
			apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New(`User "x" cannot create resource "jobs"`)), "Available JobCreationFailed", true,
		},
		"a namespace that is being deleted": {terminating, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSequence())
			refuse(r.kube, "create", "jobs", tc.err)
			if err := r.syncs(t, 2); (err != nil) != tc.wantErr {
				t.Errorf("error %v", err)
			}
			var got string
			for _, c := range r.sequence(t).Status.Conditions {
				if bad := c.Type != batchv1alpha1.ConditionAvailable && c.Type != batchv1alpha1.ConditionProgressing; bad == (c.Status == metav1.ConditionTrue) {
					got = fmt.Sprintf("%s %s", c.Type, c.Reason)
				}
			}
			diff(t, "the condition", tc.want, got)
		})
	}
}

func TestForeignNames(t *testing.T) {
	r := newRig(t, newSequence(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: "ns", UID: "x"}})
	if err := r.syncs(t, 2); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionAvailable)
	diff(t, "the reason", batchv1alpha1.ReasonNameConflict, c.Reason)
}

func TestConflictsAreNoErrors(t *testing.T) {
	sj := newSequence(started, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = new(bool); *sj.Spec.Suspend = true })
	r := newRig(t, sj, jobOf(sj))
	refuse(r.kube, "patch", "jobs", apierrors.NewConflict(batchv1.Resource("jobs"), "etl-0", errRefused))
	if err := r.syncs(t, 1); !apierrors.IsConflict(err) {
		t.Errorf("error %v is no conflict", err)
	}
	if c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionFailed); c != nil {
		t.Errorf("condition %+v", c)
	}
}
