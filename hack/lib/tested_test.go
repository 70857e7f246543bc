// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goTests are the calls of go test in the Makefile and in scripts that need no check of what it prints, and why.
var goTests = map[string]string{
	"../bench.sh":  "benchmarks, of which a reader compares the figures",
	"../matrix.sh": "hack/matrix reads the results of each test",
}

// TestResultsOfTestsAreChecked finds calls of go test that take a test which ends the program with 0 for green. hack/retest does not.
func TestResultsOfTestsAreChecked(t *testing.T) {
	files, err := filepath.Glob("../*.sh")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	comment, call := regexp.MustCompile(`(?m)(^|\s)#.*$`), regexp.MustCompile(`(?m)^.*(^|[^\w"])go test( .*)?$`)
	for _, file := range append(files, "../../Makefile") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls := call.FindAllString(comment.ReplaceAllString(string(content), ""), -1)
		if goTests[file] != "" {
			if len(calls) == 0 {
				t.Errorf("%s is an exception (%s), and calls no go test", file, goTests[file])
			}
			continue
		}
		for _, line := range calls {
			t.Errorf("%s runs tests by go test, not by hack/tested.sh or $(GO_TEST): %s", file, strings.TrimSpace(line))
		}
	}
}
