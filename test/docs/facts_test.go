// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/artifacts/base/rbac"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// row returns the first row of a table of the page that contains the text, divided into cells.
func row(t *testing.T, page, text string) []string {
	t.Helper()
	for line := range strings.Lines(read(t, page)) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, text) {
			return strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		}
	}
	t.Fatalf("%s has no row with %q", page, text)
	return nil
}

// TestNamesWithoutKind compares pages with docs/kubectl.md#common-behavior: a name alone is looked up among all kinds.
func TestNamesWithoutKind(t *testing.T) {
	means := regexp.MustCompile("`?NAME`?( alone)?,? (which )?(means|is) a JobSet")
	for _, page := range pages(t) {
		for line := range strings.Lines(read(t, page)) {
			if found := means.FindString(line); found != "" && !strings.Contains(line, "If nothing can be read, ") {
				t.Errorf("%s: %q, but a name alone means the object of that name, of whichever kind", page, found)
			}
		}
	}
	if cells := row(t, "docs/glossary.md", "| kind |"); !strings.Contains(cells[1], "of whichever kind") {
		t.Errorf("the glossary does not say what a name alone means: %s", cells[1])
	}
}

// TestDefinitionsMayStay compares the requirements of the installation with docs/operations/take-over.md, where the programs are installed beside
// definitions of upstream. The overlay leaves the APIService out, for which each kind has a component.
func TestDefinitionsMayStay(t *testing.T) {
	_, requirements, _ := strings.Cut(read(t, "docs/installation.md"), "\n## Requirements\n")
	requirements, _, _ = strings.Cut(requirements, "\n## ")
	if strings.Contains(requirements, "No CRD") {
		t.Error("docs/installation.md requires that there is no CRD, but docs/operations/take-over.md installs beside one")
	}
	for _, kind := range []string{"jobset", "leaderworkerset"} {
		if _, err := os.Stat(filepath.Join(root, "artifacts/components/without-"+kind)); err != nil {
			t.Error(err)
		}
		if want := "`without-" + kind + "`"; !strings.Contains(requirements, want) {
			t.Errorf("the requirements of docs/installation.md do not name the component %s for a cluster with a CRD", want)
		}
	}
	if !strings.Contains(requirements, "](operations/take-over.md)") {
		t.Error("the requirements of docs/installation.md do not lead to docs/operations/take-over.md")
	}
}

// TestPhasesOfRefusedPods compares the rows of docs/troubleshooting.md about the reason QuotaExceeded with the phases in which sets have it.
func TestPhasesOfRefusedPods(t *testing.T) {
	cells := row(t, "docs/troubleshooting.md", "REASON `QuotaExceeded`")
	for name, status := range map[string]v1alpha2.ReplicatedJobStatus{"no pods": {Name: "workers"}, "some pods": {Name: "workers", Active: 1}} {
		set := &v1alpha2.JobSet{Spec: v1alpha2.JobSetSpec{ReplicatedJobs: []v1alpha2.ReplicatedJob{{Name: "workers", Replicas: new(int32(2))}}}}
		set.Status.ReplicatedJobsStatus = []v1alpha2.ReplicatedJobStatus{status}
		set.Status.Conditions = []metav1.Condition{{Type: v1alpha2.PodCreationFailure, Status: metav1.ConditionTrue, Reason: v1alpha2.ReasonQuotaExceeded}}
		summary := helper.Summarize(set)
		if summary.Reason != v1alpha2.ReasonQuotaExceeded || !strings.Contains(cells[0], summary.Phase) {
			t.Errorf("a set with %s is %s with the reason %s, but docs/troubleshooting.md has:%s", name, summary.Phase, summary.Reason, cells[0])
		}
	}
}

// TestMissingResourceTypes checks that docs/troubleshooting.md has both causes of the message with which kubectl answers when discovery does not
// have a group: it is not registered, or its server does not answer. docs/operations/runbooks/JobSetAPIUnavailable.md is about the second one.
func TestMissingResourceTypes(t *testing.T) {
	cells := strings.Join(row(t, "docs/troubleshooting.md", "doesn't have a resource type"), "|")
	for _, want := range []string{"not registered", "does not answer", "(#the-api-does-not-answer)"} {
		if !strings.Contains(cells, want) {
			t.Errorf("docs/troubleshooting.md does not say %q about a missing resource type: %s", want, cells)
		}
	}
}

// TestActionsOfThePlugin compares the first sentence about the plugin with the actions: DisaggregatedSets have none.
func TestActionsOfThePlugin(t *testing.T) {
	intro, _, _ := strings.Cut(read(t, "docs/kubectl.md"), "\n\n    ")
	for sentence := range strings.SplitSeq(intro, ". ") {
		if strings.Contains(sentence, "DisaggregatedSets") && regexp.MustCompile(`\b(controls?|acts?|actions?)\b`).MatchString(sentence) {
			t.Errorf("docs/kubectl.md says that the plugin acts on DisaggregatedSets, which have no actions: %s", sentence)
		}
	}
}

// TestPermissionsOfTheServer compares the number in the example of docs/kubectl.md with the manifests of a server that manages its certificate,
// counted as `kubectl jobset doctor` counts them.
func TestPermissionsOfTheServer(t *testing.T) {
	match := regexp.MustCompile(`jobset-apiserver has the (\d+) permissions`).FindStringSubmatch(read(t, "docs/kubectl.md"))
	if match == nil {
		t.Fatal("docs/kubectl.md has no number of permissions of the server")
	}
	want := 0
	for document := range strings.SplitSeq(rbac.Server+"\n---\n"+rbac.Serving, "\n---\n") {
		var object struct {
			Rules   []rbacv1.PolicyRule
			RoleRef rbacv1.RoleRef
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		for _, rule := range object.Rules {
			want += len(rule.APIGroups) * len(rule.Resources) * len(rule.Verbs) * max(1, len(rule.ResourceNames))
		}
		want += map[string]int{"system:auth-delegator": 2, "extension-apiserver-authentication-reader": 1}[object.RoleRef.Name]
	}
	if match[1] != strconv.Itoa(want) {
		t.Errorf("docs/kubectl.md: %s, want %d", match[0], want)
	}
}

// TestSupportedFeatures looks in the list of what is not supported yet for programs of the repository.
func TestSupportedFeatures(t *testing.T) {
	_, missing, found := strings.Cut(read(t, "README.md"), "\nNot supported yet:\n")
	missing, _, _ = strings.Cut(missing, "\n## ")
	if !found || strings.Contains(missing, "restart agent") || strings.Contains(missing, "agent of in-place restarts") {
		t.Errorf("README.md lists the agent of in-place restarts, which is cmd/restart-agent, as not supported:\n%s", missing)
	}
}

// TestReadmeShowsTheFirstJobSet compares the set and the table of README.md with those of docs/jobset.md, which a test runs on a cluster.
func TestReadmeShowsTheFirstJobSet(t *testing.T) {
	load := func(page string) map[string]any {
		all := manifests(t, filepath.Join(root, page))
		if len(all) == 0 {
			t.Fatalf("%s has no manifest", page)
		}
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(all[0]), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	want := load("docs/jobset.md")
	job := want["spec"].(map[string]any)["replicatedJobs"].([]any)[0].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	delete(job["template"].(map[string]any), "metadata") // of simulated nodes
	if diff := cmp.Diff(want, load("README.md")); diff != "" {
		t.Errorf("README.md has another manifest than docs/jobset.md (-docs +README):\n%s", diff)
	}
	_, table, found := strings.Cut(read(t, "README.md"), "    $ kubectl get jobset hello -o wide\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		if !strings.Contains(read(t, "docs/jobset.md"), "\n"+strings.TrimPrefix(line, "    ")) {
			t.Errorf("docs/jobset.md does not have the line that README.md shows: %s", line)
		}
	}
	if !found {
		t.Error("README.md has no table")
	}
}
