// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

// notOwned are resources that our programs create and that none of our kinds owns. EndpointSlices are owned by a Service.
var notOwned = []schema.GroupResource{
	{Group: "events.k8s.io", Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"}, {Group: "discovery.k8s.io", Resource: "endpointslices"},
}

// rolesOf returns the rules of all roles in the manifests whose names begin so.
func rolesOf(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "..", "artifacts"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var role rbacv1.ClusterRole
			if yaml.Unmarshal([]byte(document), &role) == nil && strings.HasSuffix(role.Kind, "Role") && strings.HasPrefix(role.Name, name) {
				rules = append(rules, role.Rules...)
			}
		}
		return nil
	})
	if err != nil || len(rules) == 0 {
		t.Fatalf("%d rules of %s: %v", len(rules), name, err)
	}
	return rules
}

// allowed returns the resources that rules allow a verb for.
func allowed(rules []rbacv1.PolicyRule, verb string) (resources []schema.GroupResource) {
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, verb) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resources = append(resources, schema.GroupResource{Group: group, Resource: resource})
			}
		}
	}
	return resources
}

// TestResourcesAreAllThatControllersCreate: nothing is created without a permission, so the manifests have all of it.
// What is in our own store counts by what it owns.
func TestResourcesAreAllThatControllersCreate(t *testing.T) {
	created := allowed(rolesOf(t, "jobset-controller"), "create")
	for _, resource := range created {
		counted := slices.ContainsFunc(owners.Resources, func(r owners.Resource) bool { return r.GroupResource == resource })
		if !counted && !slices.Contains(notOwned, resource) && !apigroups.All().HasResource(resource.Group, resource.Resource) && !strings.HasSuffix(resource.Resource, "reviews") {
			t.Errorf("controllers create %s, which the witness does not count: add it to owners.Resources", resource)
		}
	}
	for _, resource := range owners.Resources {
		if !slices.Contains(created, resource.GroupResource) {
			t.Errorf("no controller creates %s: remove it from owners.Resources", resource.GroupResource)
		}
	}
}

// TestServerMayReadWhatItCounts: without a permission, no first start succeeds.
func TestServerMayReadWhatItCounts(t *testing.T) {
	listed := allowed(rolesOf(t, "jobset-apiserver"), "list")
	var wanted []schema.GroupResource
	for _, resource := range owners.Resources {
		wanted = append(wanted, resource.GroupResource)
	}
	for _, resource := range slices.Concat(wanted, apigroups.All().Stored()) {
		if !slices.Contains(listed, resource) {
			t.Errorf("the role of the server does not allow it to list %s", resource)
		}
	}
}
