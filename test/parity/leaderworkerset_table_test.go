// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// partsOfLeaderWorkerSet are the headings of the table with the number of their rows.
var partsOfLeaderWorkerSet = []struct {
	heading string
	rows    int
}{
	{"### Examples", 19},
	{"### Validation", 12},
	{"### Controller", 34},
	{"### Webhooks and units", 14},
	{"### End to end", 26},
}

// allTests returns the names of all test functions of the repository.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	tests := map[string]bool{}
	for _, tree := range []string{"../../pkg", "../../test", "../../cmd"} {
		err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, m := range function.FindAllStringSubmatch(read(t, path), -1) {
				tests[m[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return tests
}

// Each row names tests that exist, and each test that is named after a row is in the table.
func TestTableOfLeaderWorkerSet(t *testing.T) {
	tests, document := allTests(t), read(t, "../../docs/compatibility-leaderworkerset.md")
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| .* \\| (`Test.*) \\| (?:same|better|different|follows)\\b")
	name := regexp.MustCompile("`(Test\\w+)`")
	named := map[string]bool{}
	for _, part := range partsOfLeaderWorkerSet {
		_, section, found := strings.Cut(document, part.heading+"\n")
		if !found {
			t.Errorf("no heading %q", part.heading)
			continue
		}
		section, _, _ = strings.Cut(section, "\n#")
		rows := row.FindAllStringSubmatch(section, -1)
		if len(rows) != part.rows {
			t.Errorf("%s has %d rows with a test and a result, want %d", part.heading, len(rows), part.rows)
		}
		for _, m := range rows {
			for _, test := range name.FindAllStringSubmatch(m[2], -1) {
				named[test[1]] = true
				if !tests[test[1]] {
					t.Errorf("%s, row %s names %s, which does not exist", part.heading, m[1], test[1])
				}
			}
		}
	}
	for test := range tests {
		if strings.HasPrefix(test, "TestLWSRow") && !named[test] {
			t.Errorf("the table lacks %s", test)
		}
	}
}
