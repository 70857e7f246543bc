// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// patterns are how controllers write the reasons of their events: as constants, or as literals where an event is made.
// Reasons that come from constants of an API belong to conditions.
var patterns = regexp.MustCompile(strings.Join([]string{
	`(?:[rR]eason\w*|Event\w+)\s+= "([A-Z]\w+)"`,
	`Reason: "([A-Z]\w+)",`,
	`warn\("([A-Z]\w+)"`,
	`add\((?:child\.Name|"")?(?:, )?"([A-Z]\w+)", action`,
	`reason, direction :?= "([A-Z]\w+)"`,
}, "|"))

// TestReasonsOfEventsAreDocumented looks for the reasons in the packages that decide about events.
func TestReasonsOfEventsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, kind := range []string{"jobset", "sequentialjob", "leaderworkerset", "disaggregatedset", "podgroup"} {
		files, err := filepath.Glob("../../" + kind + "/plan/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			found += undocumented(t, string(page), file, patterns.FindAllStringSubmatch(string(content), -1))
		}
	}
	for file, constants := range constantsOfReasons {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		matches := constants.FindAllStringSubmatch(string(content), -1)
		if len(matches) == 0 {
			t.Errorf("%s has no reasons", file)
		}
		found += undocumented(t, string(page), file, matches)
	}
	if found < 50 {
		t.Errorf("only %d reasons were found", found)
	}
}

// constantsOfReasons are the constants of reasons beside the API types, by their files.
var constantsOfReasons = map[string]*regexp.Regexp{
	"../../../apis/generic/reasons/reasons.go":   regexp.MustCompile(`\t\w+ += "([A-Z]\w+)"`),
	"../../../apis/batch/v1alpha1/well_known.go": regexp.MustCompile(`\tReason\w+ += "([A-Z]\w+)"`),
}

// undocumented reports the reasons that a page does not mention, and returns how many reasons there are.
func undocumented(t *testing.T, page, file string, matches [][]string) int {
	for _, match := range matches {
		if reason := strings.Join(match[1:], ""); !strings.Contains(page, reason) && !conditionOnly[reason] {
			t.Errorf("%s: docs/events.md does not mention %s", file, reason)
		}
	}
	return len(matches)
}

// conditionOnly are reasons of conditions and of changes, which are no reasons of events, or which the page sums up as
// those of conditions of JobSets.
var conditionOnly = map[string]bool{
	"FailurePolicy_": true, "FailJobSetFailurePolicyAction": true, "DefaultFailurePolicy": true, "FailedJobs": true,
	"JobSetCompleted": true, "JobSetSuspended": true, "InOrderStartupPolicyInProgress": true, "InOrderStartupPolicyCompleted": true,
	"Drained": true, "SliceRemoved": true, "Migrated": true, "PodsRunning": true, "PodsNotRunning": true, "Settling": true,
	"Forbidden": true, "NotSupported": true, "ChildrenCreated": true, "Cancelled": true, "Retried": true, "ChildUnreadable": true,
	"Operational": true, "WaitingForQuota": true, "WaitingForPods": true, "ReconciliationError": true, "Reconciled": true, "ResourcesAvailable": true,
}
