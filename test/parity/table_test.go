// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity holds the tests that compare us with upstream's documented behavior row by row; this file keeps their
// table in docs/compatibility.md complete.
package parity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parts are the headings of the table with the beginning of the names of their tests and the number of their rows.
var parts = []struct {
	heading, prefix string
	rows            int
}{
	{"### Examples", "7_1", 32},
	{"### Admission", "7_2", 19},
	{"### Controller", "7_3", 36},
	{"### End to end", "7_4", 12},
}

// testsOfRows returns the names of the tests by row, such as 7_1_02.
func testsOfRows(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`func (TestRow(\d_\d_\d\d)_\w+)`).FindAllStringSubmatch(read(t, file), -1) {
			if other, ok := tests[m[2]]; ok {
				t.Errorf("row %s has two tests: %s, %s", m[2], other, m[1])
			}
			tests[m[2]] = m[1]
		}
	}
	return tests
}

// documentedTests returns the names of the tests by row, as the table has them.
func documentedTests(t *testing.T) map[string]string {
	t.Helper()
	document := read(t, "../../docs/compatibility.md")
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| .* \\| `(TestRow\\w+)` \\| (?:same|better|different|follows)\\b")
	documented := map[string]string{}
	for _, part := range parts {
		_, section, found := strings.Cut(document, part.heading+"\n")
		if !found {
			t.Fatalf("no heading %q", part.heading)
		}
		section, _, _ = strings.Cut(section, "\n#")
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s_%02d", part.prefix, n)
			if documented[name] != "" {
				t.Errorf("row %s is in the table twice", name)
			}
			documented[name] = m[2]
		}
	}
	return documented
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A row has the test that is named after it, or shares that of another row.
func TestTableNamesATestForEachRow(t *testing.T) {
	tests, documented := testsOfRows(t), documentedTests(t)
	var want []string
	for _, part := range parts {
		for row := range part.rows {
			want = append(want, fmt.Sprintf("%s_%02d", part.prefix, row+1))
		}
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("rows of the table (-want +got):\n%s", diff)
	}
	for row, test := range tests {
		if documented[row] != test {
			t.Errorf("row %s of the table names %q, want %s", row, documented[row], test)
		}
	}
	known := slices.Collect(maps.Values(tests))
	for row, test := range documented {
		if !slices.Contains(known, test) {
			t.Errorf("row %s of the table names %s, which does not exist", row, test)
		}
	}
}
