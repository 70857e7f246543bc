// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"testing"
)

// schemas are the definitions of one group in OpenAPI v3.
type schemas map[string]schema

type schema struct {
	Description          string
	Ref                  string `json:"$ref"`
	AllOf                []schema
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties *schema
}

func TestExplainDescribesEveryField(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	recursive := k.ok("explain", "jobset.spec", "--recursive")
	for _, field := range []string{"replicatedJobs", "dependsOn", "groupName", "replicas", "template", "network", "enableDNSHostnames", "subdomain",
		"publishNotReadyAddresses", "successPolicy", "targetReplicatedJobs", "failurePolicy", "maxRestarts", "restartStrategy", "rules",
		"onJobFailureReasons", "onJobFailureMessagePatterns", "startupPolicy", "startupPolicyOrder", "suspend", "coordinator", "jobIndex",
		"podIndex", "managedBy", "ttlSecondsAfterFinished", "volumeClaimPolicies", "templates", "retentionPolicy", "whenDeleted", "nodeSelector"} {
		if !strings.Contains(recursive, field+"\t<") {
			t.Errorf("explain --recursive lacks %s", field)
		}
	}
	if got := k.ok("explain", "jobset.spec.failurePolicy.restartStrategy"); !strings.Contains(got, "BlockingRecreate") || !strings.Contains(got, "DESCRIPTION") {
		t.Errorf("explain of restartStrategy:\n%s", got)
	}

	var document struct{ Components struct{ Schemas schemas } }
	if err := json.Unmarshal([]byte(k.ok("get", "--raw", "/openapi/v3/apis/jobset.x-k8s.io/v1alpha2")), &document); err != nil {
		t.Fatal(err)
	}
	const root = "io.x-k8s.jobset.v1alpha2.JobSet"
	if _, found := document.Components.Schemas[root]; !found {
		t.Fatalf("no definition %s", root)
	}
	bare, fields := document.Components.Schemas.undescribed(root)
	if len(bare) != 0 {
		t.Errorf("%d of %d fields have no description: %v", len(bare), fields, bare)
	}
	if fields < 500 {
		t.Errorf("only %d fields were reached from %s: the walk is broken", fields, root)
	}
}

// undescribed returns the fields without description in all definitions that are reachable from one, and how many fields
// there are.
func (s schemas) undescribed(root string) (bare []string, fields int) {
	seen := map[string]bool{}
	var walk func(name string)
	var follow func(sub schema)
	follow = func(sub schema) {
		if sub.Ref != "" {
			walk(strings.TrimPrefix(sub.Ref, "#/components/schemas/"))
		}
		for _, part := range sub.AllOf {
			follow(part)
		}
		if sub.Items != nil {
			follow(*sub.Items)
		}
		if sub.AdditionalProperties != nil {
			follow(*sub.AdditionalProperties)
		}
	}
	walk = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for field, property := range s[name].Properties {
			fields++
			if property.Description == "" {
				bare = append(bare, name+"."+field)
			}
			follow(property)
		}
	}
	walk(root)
	sort.Strings(bare)
	return bare, fields
}

func TestDiscoveryIsThatOfTheUpstreamResource(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	var list struct {
		Resources []struct {
			Name, SingularName, Kind string
			Namespaced               bool
			Verbs, ShortNames        []string
			Categories               []string
			StorageVersionHash       string
		}
	}
	if err := json.Unmarshal([]byte(k.ok("get", "--raw", "/apis/jobset.x-k8s.io/v1alpha2")), &list); err != nil {
		t.Fatal(err)
	}
	verbs := map[string]string{}
	for _, r := range list.Resources {
		sort.Strings(r.Verbs)
		verbs[r.Name] = strings.Join(r.Verbs, ",")
		if r.Name == "jobsets" && (r.SingularName != "jobset" || r.Kind != "JobSet" || !r.Namespaced || r.StorageVersionHash == "" || !slices.Equal(r.ShortNames, []string{"js"}) || len(r.Categories) != 0) {
			t.Errorf("discovery of jobsets: %+v", r)
		}
	}
	if out := k.ok("get", "js", "-A", "-o", "name"); strings.Contains(out, "error") {
		t.Errorf("kubectl get js: %s", out)
	}
	if got, want := verbs["jobsets"], "create,delete,deletecollection,get,list,patch,update,watch"; got != want {
		t.Errorf("verbs of jobsets: %s, want %s", got, want)
	}
	if got, want := verbs["jobsets/status"], "get,patch,update"; got != want {
		t.Errorf("verbs of jobsets/status: %s, want %s", got, want)
	}
	if all := k.ok("api-resources", "--api-group=jobset.x-k8s.io", "-o", "name"); strings.TrimSpace(all) != "jobsets.jobset.x-k8s.io" {
		t.Errorf("api-resources: %q", all)
	}
}
