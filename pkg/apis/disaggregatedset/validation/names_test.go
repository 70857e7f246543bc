// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	lwsvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// named returns a set whose name and longest name of a role, prefill, have so many characters together.
func named(t *testing.T, characters int, change func(*set)) *set {
	t.Helper()
	ds := valid(t)
	ds.Name = strings.Repeat("a", characters-len("prefill"))
	if change != nil {
		change(ds)
	}
	return ds
}

func resized(size, replicas int32) func(*set) {
	return func(ds *set) {
		for i := range ds.Spec.Roles {
			ds.Spec.Roles[i].Spec.LeaderWorkerTemplate.GroupSize, ds.Spec.Roles[i].Spec.Replicas = &size, &replicas
		}
	}
}

func sliced(slices int32, then func(*set)) func(*set) {
	return func(ds *set) {
		ds.Spec.Slices = &slices
		if then != nil {
			then(ds)
		}
	}
}

// TestNameBudgets has the longest names with which LeaderWorkerSets are accepted, and with which pods can be created
// whatever the hashes are.
func TestNameBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*set)
		safe, limit int
	}{
		"one pod in a group":       {nil, 40, 41},
		"groups of two":            {resized(2, 1), 38, 39},
		"ten groups of two":        {resized(2, 10), 38, 39},
		"eleven groups of two":     {resized(2, 11), 37, 38},
		"eleven groups of one":     {resized(1, 11), 40, 41},
		"no groups":                {resized(2, 0), 38, 39},
		"ten slices":               {sliced(10, nil), 40, 41},
		"eleven slices":            {sliced(11, nil), 39, 40},
		"eleven slices of two":     {sliced(11, resized(2, 1)), 37, 38},
		"a role that others scale": {func(ds *set) { resized(2, 1)(ds); scaledByOthers(ds, 0).Spec.Replicas = ptr.To[int32](1000) }, 38, 39},
		"another role is the longer": {func(ds *set) {
			ds.Spec.Roles[1].Name = "decodes"
			resized(2, 1)(ds)
			*ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.GroupSize = 2
		}, 38, 39},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, ValidateDisaggregatedSetCreate(named(t, tc.limit, tc.change)), "")
			expect(t, ValidateDisaggregatedSetCreate(named(t, tc.limit+1, tc.change)), "spec.roles[0].name: Invalid")
			if got := about(Warnings(named(t, tc.safe, tc.change)), "spec.roles[0].name"); len(got) > 0 {
				t.Errorf("warnings of what is safe: %q", got)
			}
			if got := about(Warnings(named(t, tc.safe+1, tc.change)), "spec.roles[0].name"); len(got) != 1 {
				t.Errorf("warnings of what is not safe: %q", got)
			}
		})
	}
}

func about(warnings []string, path string) (out []string) {
	for _, w := range warnings {
		if strings.HasPrefix(w, path) {
			out = append(out, w)
		}
	}
	return out
}

// The errors of sets name what their users can change.
func TestNameErrors(t *testing.T) {
	const lws = `spec.roles[0].name: Invalid value: "prefill": must be shorter: the names of the set and of the role may have 41 characters together, and have 42. ` +
		`LeaderWorkerSets of the role would have names of 54 characters, and may have 53. Pods carry it in the label controller-revision-hash, together with a hash: ` +
		`"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-0-00000000-prefill-012345678" would have 64 of at most 63 characters`
	if errs := ValidateDisaggregatedSetCreate(named(t, 42, nil)); len(errs) != 1 || errs[0].Error() != lws {
		t.Errorf("got  %v\nwant %s", errs, lws)
	}
	const service = `spec.roles[0].name: Invalid value: "prefill": must be shorter: with the name of the set, the names of Services would have 64 characters, and may have 63; ` +
		`both names together may have 47`
	errs := ValidateDisaggregatedSetCreate(named(t, 48, nil))
	if len(errs) != 2 || errs[0].Error() != service || errs[1].Field != "spec.roles[1].name" {
		t.Errorf("got  %v\nwant %s", errs, service)
	}
}

// A set that is stored may be scaled and changed; only what makes LeaderWorkerSets that would be refused is refused.
func TestNamesOnUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		characters int
		old, next  func(*set)
		want       string
	}{
		"scaled beyond the digits":        {39, resized(2, 1), resized(2, 1000), ""},
		"stored with names that are long": {47, resized(2, 1), resized(2, 1000), ""},
		"larger groups":                   {41, resized(1, 1), resized(2, 1), "spec.roles[0].name: Invalid"},
		"smaller groups, still too long":  {47, resized(2, 1), resized(1, 1), "spec.roles[0].name: Invalid"},
		"more slices":                     {41, nil, sliced(11, nil), "spec.roles[0].name: Invalid"},
		"a longer role":                   {41, nil, func(ds *set) { ds.Spec.Roles[0].Name = "prefills" }, "spec.roles[0].name: Invalid"},
		"a longer role with a long name":  {47, nil, func(ds *set) { ds.Spec.Roles[0].Name = "prefills" }, "spec.roles[0].name: Invalid"},
		"another template of a long name": {47, nil, func(ds *set) {
			ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = map[string]string{"a": "b"}
		}, ""},
		"another order of roles, too long": {47, nil, func(ds *set) { ds.Spec.Roles[0], ds.Spec.Roles[1] = ds.Spec.Roles[1], ds.Spec.Roles[0] }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stored := named(t, tc.characters, tc.old)
			next := stored.DeepCopy()
			if tc.next != nil {
				tc.next(next)
			}
			expect(t, ValidateDisaggregatedSetUpdate(next, stored), tc.want)
		})
	}
}

// What this package accepts must be what the server of LeaderWorkerSets accepts.
func TestChildrenOfAcceptedNamesAreAccepted(t *testing.T) {
	for characters := 20; characters <= 47; characters++ {
		for _, change := range []func(*set){nil, resized(2, 1), resized(2, 11), sliced(100, resized(2, 100))} {
			ds := named(t, characters, change)
			role := &ds.Spec.Roles[0]
			child := &leaderworkerset.LeaderWorkerSet{Spec: *role.Spec.DeepCopy()}
			child.Name, child.Namespace = childName(ds, role), ds.Namespace
			named := func(err *field.Error) bool { return err.Field == "metadata.name" }
			refused := slices.ContainsFunc(lwsvalidation.ValidateLeaderWorkerSetCreate(child), named)
			if accepted := len(ValidateDisaggregatedSetCreate(ds)) == 0; accepted == refused {
				t.Errorf("%d characters: the set is accepted: %t, its LeaderWorkerSets are refused: %t", characters, accepted, refused)
			}
		}
	}
}
