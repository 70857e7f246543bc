// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// definitionPriority is the groupPriorityMinimum that kube-apiserver gives to the groups of CustomResourceDefinitions.
const definitionPriority = 1000

// TestOwnGroupsComeAfterDefinitions: kubectl gives a word that two kinds have to the group with the higher priority. Our own groups must
// not win against a product that was there before. The groups that we share with upstream have the priority that they have there.
func TestOwnGroupsComeAfterDefinitions(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range []string{"artifacts/base/apiservice.yaml", "artifacts/components/disaggregatedset/apiservice.yaml", "artifacts/take-over/migration.yaml"} {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(content), "\n---\n") {
			var service struct {
				Kind string
				Spec struct {
					Group                string
					GroupPriorityMinimum int
				}
			}
			if err := yaml.Unmarshal([]byte(document), &service); err != nil {
				t.Fatal(err)
			}
			if service.Kind != "APIService" {
				continue
			}
			group, priority := service.Spec.Group, service.Spec.GroupPriorityMinimum
			own := strings.HasSuffix(group, "jobset-apiserver.io")
			seen[group] = true
			if own && priority >= definitionPriority || !own && priority != definitionPriority {
				t.Errorf("%s: groupPriorityMinimum of %s is %d", file, group, priority)
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("APIServices of %d groups, want 6: %v", len(seen), seen)
	}
}
