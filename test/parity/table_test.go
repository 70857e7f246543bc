// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity holds the tests that compare us with upstream's documented behaviour row by row; this file keeps their
// table in docs/compatibility.md complete.
package parity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows is the number of rows of each part of the behaviour table.
var rows = map[string]int{"7_1": 32, "7_2": 19, "7_3": 36, "7_4": 12}

// find returns what an expression finds in files; its first group is the part, the second one the row.
func find(t *testing.T, expression string, files ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(content), -1) {
			row := m[1] + "_" + m[2]
			if other, ok := found[row]; ok {
				t.Errorf("row %s has two tests: %s, %s", row, other, m[0])
			}
			found[row] = regexp.MustCompile(`TestRow\w+`).FindString(m[0])
		}
	}
	return found
}

func TestEveryRowHasATestInTheTable(t *testing.T) {
	sources, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := find(t, `func TestRow(\d_\d)_(\d\d)_\w+`, sources...)
	documented := find(t, "\\| `TestRow(\\d_\\d)_(\\d\\d)_\\w+` \\| (?:same|better|different|follows)\\b", "../../docs/compatibility.md")
	if diff := cmp.Diff(tests, documented); diff != "" {
		t.Errorf("tests and the table in docs/compatibility.md (-tests +table):\n%s", diff)
	}
	var want []string
	for part, n := range rows {
		for row := range n {
			want = append(want, fmt.Sprintf("%s_%02d", part, row+1))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(tests))); diff != "" {
		t.Errorf("rows with a test (-want +got):\n%s", diff)
	}
}
