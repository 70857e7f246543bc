// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"os"
	"strings"
	"testing"
)

// violations are the fields that do not follow the rules of API types, each with what would break if it did.
var violations = map[string]string{
	"names_match,pkg/apis/leaderworkerset/v1,LeaderWorkerTemplate,GroupSize": "a field Size would hide the method Size of the protobuf form; clients know the key size",
	"names_match,pkg/apis/leaderworkerset/v1,SubGroupPolicy,Type":            "programs in Go know the field as Type; clients know the key subGroupPolicyType",
}

// The list of violations grows with each type that breaks a rule. Only those that have a reason may be in it.
func TestViolationsHaveReasons(t *testing.T) {
	data, err := os.ReadFile("../../hack/api-violations.list")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		rule, found := strings.CutPrefix(strings.TrimSpace(line), "API rule violation: ")
		if !found {
			t.Errorf("line %q is no violation", line)
			continue
		}
		rule = strings.ReplaceAll(rule, "github.com/jobset-apiserver/jobset-apiserver/", "")
		listed[rule] = true
		if violations[rule] == "" {
			t.Errorf("%s has no reason: correct the type, or give the reason here", rule)
		}
	}
	for rule := range violations {
		if !listed[rule] {
			t.Errorf("%s is no longer listed: remove its reason", rule)
		}
	}
}
