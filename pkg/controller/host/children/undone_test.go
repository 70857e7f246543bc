// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestManagerOf(t *testing.T) {
	entry := func(manager, fields string, second int64) metav1.ManagedFieldsEntry {
		at := metav1.Unix(second, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"nobody":          {nil, ""},
		"one":             {[]metav1.ManagedFieldsEntry{entry("kueue", `{"f:spec":{"f:suspend":{}}}`, 1)}, "kueue"},
		"another field":   {[]metav1.ManagedFieldsEntry{entry("kueue", `{"f:spec":{"f:parallelism":{}}}`, 1)}, ""},
		"the last one":    {[]metav1.ManagedFieldsEntry{entry("kueue", `{"f:spec":{"f:suspend":{}}}`, 2), entry("us", `{"f:spec":{"f:suspend":{}}}`, 1)}, "kueue"},
		"not well-formed": {[]metav1.ManagedFieldsEntry{entry("kueue", `{"f:spec"`, 1), {Manager: "other"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ManagerOf(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.fields}}, "spec", "suspend"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
