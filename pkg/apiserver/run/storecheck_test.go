// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// checkedGroups returns the groups that the check of the store looks at, with flags.
func checkedGroups(t *testing.T, groups apigroups.List, gates, runtimeConfig string) []string {
	t.Helper()
	gate, err := features.NewGate()
	if err == nil {
		err = gate.Set(gates)
	}
	if err != nil {
		t.Fatal(err)
	}
	enablement := genericoptions.NewAPIEnablementOptions()
	if err := enablement.RuntimeConfig.Set(runtimeConfig); runtimeConfig != "" && err != nil {
		t.Fatal(err)
	}
	_, codecs := apiserver.NewScheme()
	config := &apiserver.Config{Generic: server.NewRecommendedConfig(codecs), APIGroups: groups, Gates: gate}
	config.Generic.EffectiveVersion = options.NewEffectiveVersion()
	if err := enablement.ApplyTo(&config.Generic.Config, groups.Enabled(), groups); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, version := range servedVersions(config) {
		found[version.Group] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// TestGroupsOfTheStoreCheck: a group that comes with a gate, without --runtime-config, or with a version of the program, is one that the
// check of the store has not looked at. TestGroupsThatCome of package storecheck shows what happens to such a group.
func TestGroupsOfTheStoreCheck(t *testing.T) {
	const batch, disaggregated, jobsets, leaderworkersets = "batch.jobset-apiserver.io", "disaggregatedset.x-k8s.io", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
	all := apigroups.All()
	older := slices.DeleteFunc(apigroups.All(), func(g apigroups.Group) bool { return g.Group() == leaderworkersets })
	for name, tc := range map[string]struct {
		groups               apigroups.List
		gates, runtimeConfig string
		want                 []string
	}{
		"by default":                       {groups: all, want: []string{batch, jobsets, leaderworkersets}},
		"with the gate":                    {groups: all, gates: "DisaggregatedSet=true", want: []string{batch, disaggregated, jobsets, leaderworkersets}},
		"a group that is switched off":     {groups: all, runtimeConfig: "leaderworkerset.x-k8s.io/v1=false", want: []string{batch, jobsets}},
		"a resource that is switched off":  {groups: all, runtimeConfig: "batch.jobset-apiserver.io/v1alpha1/sequentialjobs=false", want: []string{batch, jobsets, leaderworkersets}},
		"a version that lacks a group yet": {groups: older, want: []string{batch, jobsets}},
	} {
		if diff := cmp.Diff(tc.want, checkedGroups(t, tc.groups, tc.gates, tc.runtimeConfig)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// named stores the objects of a resource below its name.
type named struct{}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (named) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{ResourcePrefix: resource.Resource}, nil
}

// TestCreatedObjects: a group counts as served before if the store has objects of it, unless objects of one of its resources were imported.
func TestCreatedObjects(t *testing.T) {
	_, codecs := apiserver.NewScheme()
	config := &apiserver.Config{APIGroups: apigroups.All(), Generic: server.NewRecommendedConfig(codecs)}
	config.Generic.RESTOptionsGetter = named{}
	for name, tc := range map[string]struct {
		stored, imported, group string
		want                    bool
	}{
		"objects":                            {stored: "jobsets", group: "jobset.x-k8s.io", want: true},
		"no objects":                         {group: "jobset.x-k8s.io"},
		"objects of another group":           {stored: "jobsets", group: "leaderworkerset.x-k8s.io"},
		"objects that were imported":         {stored: "jobsets", imported: "jobsets", group: "jobset.x-k8s.io"},
		"objects of one of several kinds":    {stored: "podreadinessgroups", group: "batch.jobset-apiserver.io", want: true},
		"one of several kinds was imported":  {stored: "podreadinessgroups", imported: "sequentialjobs", group: "batch.jobset-apiserver.io"},
		"a group that the server never knew": {stored: "jobsets", group: "example.com"},
	} {
		has := func(_ context.Context, prefix string) (bool, error) {
			return prefix == tc.stored, nil
		}
		imported := func(_ context.Context, resource schema.GroupResource) (bool, error) {
			return resource.Resource == tc.imported, nil
		}
		if got, err := created(t.Context(), config, tc.group, has, imported); err != nil || got != tc.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
