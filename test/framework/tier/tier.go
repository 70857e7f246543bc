// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tier says to which tier a test belongs. The gate (`make test`) runs on every change, and none of its tests may depend
// on the speed of the machine. The long tier (`make long`) runs before a release: tests that break what others share,
// that need a cluster of their own, or that take long.
package tier

import (
	"os"
	"testing"
)

// Variable is the environment variable that chooses the tier. LongTier is its value for tests on request; no other value has a meaning.
const (
	Variable = "JOBSET_TESTS"
	LongTier = "long"
)

// SafetyAttribute is the attribute of a test that proves safety, which hack/retest reads from the output of the test.
const SafetyAttribute = "safety"

// Long says that tests on request run.
func Long() bool { return os.Getenv(Variable) == LongTier }

// OnRequest skips the test unless the long tier runs. It is the first line of a test, and why is the reason that the test is not part of the gate.
func OnRequest(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("on request (%s=%s): %s", Variable, LongTier, why)
	}
}

// Safety marks a test that proves that nothing is lost, done twice or allowed to the wrong user. Such a test is not run again after a failure:
// a fault that shows once in many runs is a defect, too.
func Safety(t testing.TB) {
	t.Helper()
	t.Attr(SafetyAttribute, "true")
}
