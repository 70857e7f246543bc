// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// troubles are the conditions that keep objects of each kind from running. Server, plugin and metrics take them from the same lists.
func troubles() map[string][]string {
	var ofSequences []string
	for _, trouble := range batchv1alpha1.Troubles() {
		ofSequences = append(ofSequences, trouble.Condition)
	}
	return map[string][]string{
		"JobSet": jobsetv1alpha2.Troubles(), "LeaderWorkerSet": leaderworkersetv1.Troubles(), "DisaggregatedSet": disaggregatedsetv1.Troubles(),
		"SequentialJob": ofSequences,
	}
}

// TestListsOfTroubles compares the lists of the documentation with those of the program.
func TestListsOfTroubles(t *testing.T) {
	all := troubles()
	for kind, metric := range map[string]string{
		"JobSet": "jobset_jobsets_with_condition", "LeaderWorkerSet": "leaderworkerset_leaderworkersets_with_condition",
		"DisaggregatedSet": "disaggregatedset_disaggregatedsets_with_condition",
	} {
		_, list, _ := strings.Cut(row(t, "docs/operations/metrics.md", "| `"+metric+"` |")[3], "condition that ")
		if got := asCode(list); !slices.Equal(got, all[kind]) {
			t.Errorf("docs/operations/metrics.md: %s has the conditions %q, want %q", metric, got, all[kind])
		}
	}
	_, list, _ := strings.Cut(row(t, "docs/attempts.md", "| Restarting, Pending, Starting |")[1], "that is True")
	if got := asCode(list); !slices.Equal(got[:min(len(got), len(all["JobSet"]))], all["JobSet"]) {
		t.Errorf("docs/attempts.md: the reasons of a set that is starting come from %q, want first %q", got, all["JobSet"])
	}
	for _, condition := range all["JobSet"] {
		row(t, "docs/controller.md", "| `"+condition+"` |")
	}
}

// TestHealthOfTroubles checks that the health checks for Argo CD read each condition that keeps an object from running.
func TestHealthOfTroubles(t *testing.T) {
	content := read(t, "artifacts/gitops/argocd-cm.yaml")
	for kind, conditions := range troubles() {
		script := regexp.MustCompile(`(?s)_` + kind + `: \|\n(.*?)(\n  resource|$)`).FindStringSubmatch(content)
		if script == nil {
			t.Errorf("argocd-cm.yaml has no health check for %s", kind)
			continue
		}
		for _, condition := range conditions {
			if !regexp.MustCompile(`\b` + condition + `\b`).MatchString(script[1]) {
				t.Errorf("argocd-cm.yaml: the health check of %s does not read the condition %s", kind, condition)
			}
		}
	}
}

// asCode returns the words of a line that are quoted as code.
func asCode(line string) (words []string) {
	for _, match := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(line, -1) {
		words = append(words, match[1])
	}
	return words
}
