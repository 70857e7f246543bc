// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

func TestOwnersAreCountedByCondition(t *testing.T) {
	counts := children.NewConditionCounts("test_owners_with_condition", "Owners", []string{"Held", "Waiting"})
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(counts)
	check := func(when string, lines ...string) {
		t.Helper()
		want := ""
		if len(lines) > 0 {
			want = "# HELP test_owners_with_condition [ALPHA] Number of Owners by condition that is true: Held or Waiting.\n# TYPE test_owners_with_condition gauge\n" + strings.Join(lines, "\n") + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "test_owners_with_condition"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	held, waiting := `test_owners_with_condition{condition="Held"} `, `test_owners_with_condition{condition="Waiting"} `
	is := func(types ...string) (conditions []metav1.Condition) {
		for _, one := range types {
			conditions = append(conditions, metav1.Condition{Type: one, Status: metav1.ConditionTrue})
		}
		return conditions
	}
	a, b := cache.NewObjectName("ns", "a"), cache.NewObjectName("ns", "b")
	counts.Set(a, is("Waiting", "Unrelated"))
	check("before the controller leads")
	counts.Show()
	check("one waits", held+"0", waiting+"1")
	counts.Set(b, is("Held", "Waiting"))
	counts.Set(b, is("Held", "Waiting"))
	check("another one has both conditions", held+"1", waiting+"2")
	counts.Set(b, []metav1.Condition{{Type: "Held", Status: metav1.ConditionTrue}, {Type: "Waiting", Status: metav1.ConditionFalse}})
	check("it waits no longer", held+"1", waiting+"1")
	counts.Set(a, nil)
	counts.Set(a, nil)
	counts.Set(b, nil)
	check("both are gone", held+"0", waiting+"0")
}
