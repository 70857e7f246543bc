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

// reasons are how controllers write the reasons of their events: as constants, or as literals where an event is made.
// Reasons that come from constants of an API belong to conditions.
var reasons = regexp.MustCompile(strings.Join([]string{
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
			for _, match := range reasons.FindAllStringSubmatch(string(content), -1) {
				reason := strings.Join(match[1:], "")
				if found++; !strings.Contains(string(page), reason) && !conditionOnly[reason] {
					t.Errorf("%s: docs/events.md does not mention %s", file, reason)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d reasons were found", found)
	}
}

// conditionOnly are reasons of conditions and of changes, which are no reasons of events, or which the page sums up as
// those of conditions of JobSets.
var conditionOnly = map[string]bool{
	"Error": true, "FailurePolicy_": true, "FailJobSetFailurePolicyAction": true, "DefaultFailurePolicy": true, "FailedJobs": true,
	"JobSetFailed": true, "JobSetCompleted": true, "JobSetSuspended": true, "InOrderStartupPolicyInProgress": true, "InOrderStartupPolicyCompleted": true,
	"Drained": true, "SliceRemoved": true, "Migrated": true, "PodsRunning": true, "PodsNotRunning": true, "Settling": true,
}
