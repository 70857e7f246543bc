// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	podtemplatevalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
)

// The validation of JobSets tests every key. Here are the entry points that other kinds use too.
func TestTemplates(t *testing.T) {
	path := field.NewPath("template")
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}, {Name: "c"}, {}}}}
	cases := map[string]struct {
		got  field.ErrorList
		want []string
	}{
		"an empty pod template": {podtemplatevalidation.ValidatePodTemplate(&corev1.PodTemplateSpec{}, path), []string{"template: Required value"}},
		"a pod template": {podtemplatevalidation.ValidatePodTemplate(&pod, path), []string{
			"template.spec.containers[2].name: Required value", "template.spec.containers[1]: Duplicate value",
		}},
		"an empty Job template": {podtemplatevalidation.ValidateJobTemplate(&batchv1.JobTemplateSpec{}, path), []string{"template: Required value"}},
		"a Job template without a pod": {
			podtemplatevalidation.ValidateJobTemplate(&batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{SuccessPolicy: &batchv1.SuccessPolicy{}}}, path),
			[]string{"template.spec.successPolicy.rules: Required value", "template.spec.template: Required value"},
		},
		"a claim": {
			podtemplatevalidation.ValidateClaimSpec(&corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{Name: "n"}}, path),
			[]string{"template.dataSource.kind: Required value"},
		},
	}
	for name, tc := range cases {
		var got []string
		for _, err := range tc.got {
			got = append(got, err.Field+": "+err.Type.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
