// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// decision is a decision about the set service(2), and what it writes.
type decision struct {
	change func(*disaggregatedsetv1.DisaggregatedSet)
	obs    Observed
	want   []string
}

func checkDecisions(t *testing.T, cases map[string]decision) {
	t.Helper()
	for caseName, tc := range cases {
		t.Run(caseName, func(t *testing.T) {
			tc.obs.Set = service(2)
			if tc.change != nil {
				tc.change(tc.obs.Set)
			}
			got := writes(Decide(tc.obs))
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tc.want))
			if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// now is the revision of the set, and services and formerly are its Services of it and of a former one.
var (
	now = func() string {
		revision, err := helper.Revision(service(2))
		if err != nil {
			panic(err)
		}
		return revision
	}()
	services = []Service{served(child(now, "prefill", 2)), served(child(now, "decode", 2))}
	formerly = []Service{served(child("a", "prefill", 2)), served(child("a", "decode", 2))}
)

// scaledByOthers has the role prefill scaled by others.
func scaledByOthers(ds *disaggregatedsetv1.DisaggregatedSet) {
	ds.Spec.Roles[0].Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
}

func scaler(replicas int32) *disaggregatedsetv1.DisaggregatedSetRoleScaler {
	s := newScaler(service(2), "prefill", int64(replicas))
	s.UID = "scaler"
	return s
}

func annotated(c Child, initial int64) Child {
	c.Initial, c.Annotated = &initial, true
	return c
}

func created(c Child, second int) Child {
	c.Created = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
	return c
}

func legacy(c Child) Child {
	c.Name, c.Legacy = "llm-"+c.Revision+"-"+c.Role, true
	return c
}

func inSlice(slice int32, c Child) Child {
	c.Name, c.Slice = helper.SetName("llm", slice, c.Revision, c.Role), slice
	return c
}

func served(c Child) Service {
	return Service{Ref: Ref{Name: c.Name + "-prv", UID: "uid"}, Revision: c.Revision, Slice: c.Slice}
}

func name(slice int32, role string) string { return helper.SetName("llm", slice, now, role) }

func unready(c Child) Child {
	c.Ready = 0
	return c
}

func lagging(c Child) Child {
	c.Ready--
	return c
}

func going(c Child) Child {
	c.Deleting = true
	return c
}
