// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestChanges(t *testing.T) {
	type inner struct {
		Name     string
		Count    *int32
		Quantity *resource.Quantity
	}
	type outer struct {
		Items    []inner
		Words    []string
		Map      map[string]string
		Env      []corev1.EnvVar
		MaxTries int32
		TTLDays  int32
		UID      string
		metav1.ObjectMeta
	}
	cases := map[string]struct {
		next, prev outer
		want       []string
	}{
		"nothing differs": {next: outer{Words: []string{}}},
		"a number":        {outer{MaxTries: 2}, outer{MaxTries: 1}, []string{"o.maxTries: 2: was 1"}},
		"a name that begins with an abbreviation": {outer{TTLDays: 2, UID: "b"}, outer{TTLDays: 1, UID: "a"}, []string{"o.ttlDays: 2: was 1", `o.uid: b: was "a"`}},
		"metadata": {outer{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}, outer{}, []string{"o.metadata.labels[a]: 1: was not set"}},
		"a pointer is set, changed and removed": {
			outer{Items: []inner{{Count: ptr.To[int32](0)}, {Count: ptr.To[int32](2)}, {}}},
			outer{Items: []inner{{}, {Count: ptr.To[int32](1)}, {Count: ptr.To[int32](3)}}},
			[]string{"o.items[0].count: 0: was not set", "o.items[1].count: 2: was 1", "o.items[2].count: was 3, now is not"},
		},
		"quantities that are equal": {outer{Items: []inner{{Quantity: ptr.To(resource.MustParse("1"))}}}, outer{Items: []inner{{Quantity: ptr.To(resource.MustParse("1000m"))}}}, nil},
		"a quantity":                {outer{Items: []inner{{Quantity: ptr.To(resource.MustParse("2Gi"))}}}, outer{Items: []inner{{Quantity: ptr.To(resource.MustParse("1Gi"))}}}, []string{"o.items[0].quantity: 2Gi: was \"1Gi\""}},
		"an item of another name":   {outer{Items: []inner{{Name: "b", Count: ptr.To[int32](1)}}}, outer{Items: []inner{{Name: "a"}}}, []string{`o.items[0].name: b: was "a"`}},
		"more items":                {outer{Items: []inner{{}, {}}}, outer{Items: []inner{{}}}, []string{"o.items: had 1 item, now 2"}},
		"the only items":            {outer{Items: []inner{{}}}, outer{}, []string{"o.items: was not set"}},
		"a list of strings":         {outer{Words: []string{"a"}}, outer{Words: []string{"b"}}, []string{"o.words: "}},
		"keys of a map":             {outer{Map: map[string]string{"a": "1", "b": "2"}}, outer{Map: map[string]string{"b": "3", "c": "4"}}, []string{`o.map[a]: 1: was not set`, `o.map[b]: 2: was "3"`, `o.map[c]: was "4", now is not`}},
		"a field with a JSON tag":   {outer{Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}, outer{Env: []corev1.EnvVar{{Name: "A", Value: "2"}}}, []string{`o.env[0].value: 1: was "2"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Changed(tc.next, tc.prev, field.NewPath("o"), func(string) string { return "" }) {
				value := ""
				if _, omitted := err.BadValue.(field.OmitValueType); !omitted {
					value = fmt.Sprintf("%v: ", err.BadValue)
				}
				got = append(got, err.Field+": "+value+trimmed(err.Detail))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// trimmed leaves out the separator before an empty explanation.
func trimmed(detail string) string {
	if n := len(detail); n > 1 && detail[n-2:] == "; " {
		return detail[:n-2]
	}
	return detail
}

func TestChangesAreBounded(t *testing.T) {
	next, prev := make([]corev1.EnvVar, 5000), make([]corev1.EnvVar, 5000)
	for i := range next {
		next[i].Value = "x"
	}
	if got := len(Changed(next, prev, field.NewPath("env"), func(string) string { return "" })); got != maxChanges {
		t.Errorf("%d changes are reported, want %d", got, maxChanges)
	}
}
