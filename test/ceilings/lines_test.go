// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lines of code of each part of the product")

const linesFile = "testdata/lines.txt"

// TestLinesOfCode compares the lines of each part of the product with testdata/lines.txt. A change that needs more raises the number there, so
// that its review sees it: go test ./test/ceilings -run TestLinesOfCode -update.
func TestLinesOfCode(t *testing.T) {
	lines := map[string]int{}
	for _, f := range product(t) {
		lines[part(f.room)] += f.lines
		lines["all"] += f.lines
	}
	if *update {
		var content bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&content, "%s %d\n", name, ceiling(lines[name]))
		}
		if err := os.WriteFile(linesFile, content.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(linesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var name string
		var most int
		if _, err := fmt.Sscan(line, &name, &most); err != nil {
			t.Fatalf("%s: %q: %v", linesFile, line, err)
		}
		if lines[name] > most {
			t.Errorf("%s has %d lines, and %s allows %d: remove some, or run this test with -update", name, lines[name], linesFile, most)
		}
		delete(lines, name)
	}
	for name := range lines {
		t.Errorf("%s is not in %s: run this test with -update", name, linesFile)
	}
}

// part is the part of the product to which a package belongs: two folders below pkg, and one below cmd.
func part(room string) string {
	parts := strings.Split(room, "/")
	if parts[0] == "cmd" {
		return "cmd"
	}
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// ceiling returns the number of lines that a part may have that has n now. Small changes do not raise it.
func ceiling(n int) int { return (n+n/100)/100*100 + 100 }
