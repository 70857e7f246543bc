// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestReversals(t *testing.T) {
	owner, begin := cache.NewObjectName("ns", "etl"), time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		changes []string
		seconds []int
		want    bool
	}{
		"never":                           {nil, nil, false},
		"twice":                           {[]string{"a", "a"}, []int{0, 1}, false},
		"three times":                     {[]string{"a", "a", "a"}, []int{0, 1, 60}, true},
		"three times in a longer time":    {[]string{"a", "a", "a"}, []int{0, 1, 61}, false},
		"the last three of four":          {[]string{"a", "a", "a", "a"}, []int{0, 61, 62, 63}, true},
		"of another incarnation":          {[]string{"b", "b", "b"}, []int{0, 1, 2}, false},
		"after that of another":           {[]string{"b", "b", "a", "a"}, []int{0, 1, 2, 3}, false},
		"another one came between":        {[]string{"a", "a", "b", "a"}, []int{0, 1, 2, 3}, false},
		"the clock of the machine is set": {[]string{"a", "a", "a"}, []int{100, 1, 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReversals(&Host{})
			for i, change := range tc.changes {
				r.Made(owner, change, begin.Add(time.Duration(tc.seconds[i])*time.Second))
			}
			if got := r.Contested(owner, "a"); got != tc.want {
				t.Errorf("contested: %t, want %t", got, tc.want)
			}
			if r.Contested(cache.NewObjectName("ns", "other"), "a") {
				t.Error("that of another owner is contested")
			}
			r.Forget(owner)
			if r.Contested(owner, "a") {
				t.Error("contested after it was forgotten")
			}
		})
	}
}

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
