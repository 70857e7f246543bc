// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func claimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

func testVolumeClaims(t *testing.T, e *env) {
	// The claim is what a JobSet of that name left behind; more is set on it than the template asks for.
	for _, name := range []string{"data-retained"} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec("1Gi")}
		claim.Spec.StorageClassName = ptr.To("fast")
		if _, err := plane.Kube.CoreV1().PersistentVolumeClaims(e.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		name      string
		size      string
		retention jobsetv1alpha2.RetentionPolicyType
		// want are the fields of the causes of a refusal.
		want []string
	}{
		"no claim of that name exists":                   {name: "other", size: "5Gi", retention: jobsetv1alpha2.RetentionPolicyDelete},
		"the claim fits and is retained":                 {name: "retained", size: "1024Mi", retention: jobsetv1alpha2.RetentionPolicyRetain},
		"9f: the claim has another size":                 {name: "retained", size: "2Gi", retention: jobsetv1alpha2.RetentionPolicyRetain, want: []string{"spec.volumeClaimPolicies[0].template[0].spec"}},
		"9g: the claim would be deleted with the JobSet": {name: "retained", size: "1Gi", retention: jobsetv1alpha2.RetentionPolicyDelete, want: []string{"spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted"}},
		"9f and 9g: the claim has another size and would be deleted": {name: "retained", size: "2Gi", retention: jobsetv1alpha2.RetentionPolicyDelete, want: []string{
			"spec.volumeClaimPolicies[0].template[0].spec", "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			js := jobSet(c.name, withClaims(c.size, c.retention))
			_, err := e.typed.Create(t.Context(), js, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			var got []string
			if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
				if kind := status.Status().Details.Kind; kind != "JobSet" {
					t.Errorf("refused kind is %q", kind)
				}
				for _, cause := range status.Status().Details.Causes {
					got = append(got, cause.Field)
				}
			}
			if (err != nil) != apierrors.IsInvalid(err) {
				t.Errorf("error is %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func withClaims(size string, retention jobsetv1alpha2.RetentionPolicyType) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
			Templates:       []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec(size)}},
			RetentionPolicy: &jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: ptr.To(retention)},
		}}
		container := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
		container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}
