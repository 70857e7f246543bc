// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupkinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCheck shows that each kind of defect is found.
func TestCheck(t *testing.T) {
	const volcano, coscheduling = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"
	group := func(version string, spec map[string]any) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		out.SetAPIVersion(version)
		out.SetKind("PodGroup")
		out.SetName("g")
		return out
	}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"Volcano":            {group(volcano, map[string]any{"minMember": int64(2), "minResources": map[string]any{"cpu": "500m"}, "queue": "q", "priorityClassName": "p"}), ""},
		"coscheduling":       {group(coscheduling, map[string]any{"minMember": int64(2), "minResources": map[string]any{"memory": "1Gi", "cpu": "1"}}), ""},
		"another version":    {group("scheduling.x-k8s.io/v1", nil), "no definition of PodGroup of scheduling.x-k8s.io/v1"},
		"an unknown field":   {group(coscheduling, map[string]any{"minMember": int64(2), "queue": "q"}), "spec.queue: Invalid value: null: unknown field"},
		"a number as text":   {group(volcano, map[string]any{"minMember": "2"}), "spec.minMember in body must be of type integer"},
		"no member":          {group(coscheduling, map[string]any{"minMember": int64(0)}), "spec.minMember in body should be greater than or equal to 1"},
		"more than 32 bits":  {group(volcano, map[string]any{"minMember": int64(1) << 31}), "must be a number of 32 bits"},
		"no quantity":        {group(volcano, map[string]any{"minResources": map[string]any{"cpu": "much"}}), "spec.minResources.cpu in body should match"},
		"a quantity in full": {group(volcano, map[string]any{"minResources": map[string]any{"cpu": map[string]any{}}}), "spec.minResources.cpu in body must be of type"},
		"a name that is too long for a label": {func() *unstructured.Unstructured {
			out := group(volcano, nil)
			out.SetName(strings.Repeat("a", 64))
			return out
		}(), "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tc.object)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
