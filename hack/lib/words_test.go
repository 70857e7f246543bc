// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRefusedWords has the check of words read a repository with one file.
func TestRefusedWords(t *testing.T) {
	const advice = "say what is taken, passed on or switched"
	for name, tc := range map[string]struct {
		path, content string
		want          []string
	}{
		"no such word": {path: "pkg/a.go", content: "package a // it passes the client on\n"},
		"in a comment": {
			path: "pkg/a.go", content: "package a\n// It is in our hands.\n",
			want: []string{"pkg/a.go:2:// It is in our hands.", "the word hands is refused: " + advice},
		},
		"at the begin of a name": {
			path: "pkg/a.go", content: "var handsOf int\n",
			want: []string{"pkg/a.go:1:var handsOf int", "the word hands is refused: " + advice},
		},
		"at the end of a name": {
			path: "pkg/a.go", content: "func newHands() {}\n",
			want: []string{"pkg/a.go:1:func newHands() {}", "the word hands is refused: " + advice},
		},
		"in a script": {
			path: "hack/a.sh", content: "hands=2\n",
			want: []string{"hack/a.sh:1:hands=2", "the word hands is refused: " + advice},
		},
		"in a document": {
			path: "docs/a.md", content: "It changes hands.\n",
			want: []string{"docs/a.md:1:It changes hands.", "the word hands is refused: " + advice},
		},
		"in the name of a file": {
			path: "pkg/hands_test.go", content: "package a\n",
			want: []string{"pkg/hands_test.go: the name of the file", "the word hands is refused: " + advice},
		},
		"in a longer word":  {path: "pkg/a.go", content: "package a // shorthands and handsome\n"},
		"in generated code": {path: "pkg/generated/a.go", content: "package a // hands\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, verifyWords(t, tc.path, tc.content)); diff != "" {
				t.Errorf("what is refused differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEachRefusedWord has lines with each word that must be refused, and others that may have it.
func TestEachRefusedWord(t *testing.T) {
	for word, lines := range map[string]struct{ refused, allowed []string }{
		"hands":    {refused: []string{"hands", "inOurHands"}, allowed: []string{"handle", "shorthands"}},
		"nudge":    {refused: []string{"nudge", "nudged(x)", "changeNudge", "nudging"}},
		"visit":    {refused: []string{"visit", "eachVisited", "a visitor"}, allowed: []string{"flags.VisitAll(f)", "revisit"}},
		"bid":      {refused: []string{"bid", "newBid(x)", "it bids"}, allowed: []string{"forbidden", "rabid", "bidirectional"}},
		"prompt":   {refused: []string{"promptAfter", "promptly"}, allowed: []string{"a shell prompt", "a confirmation prompt", "impromptu"}},
		"standing": {refused: []string{"standing", "newStanding()"}, allowed: []string{"outstanding", "understanding", "Notwithstanding"}},
	} {
		for _, line := range slices.Concat(lines.refused, lines.allowed) {
			t.Run(word+" "+line, func(t *testing.T) {
				t.Parallel()
				refused := len(verifyWords(t, "pkg/a.go", "package a // "+line+"\n")) > 0
				if want := slices.Contains(lines.refused, line); refused != want {
					t.Errorf("the line %q is refused: %t, want %t", line, refused, want)
				}
			})
		}
	}
}

// verifyWords returns the lines with which the check fails; none if it passes.
func verifyWords(t *testing.T, path, content string) []string {
	t.Helper()
	root := t.TempDir()
	script, err := os.ReadFile("../verify-words.sh")
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, content []byte, mode os.FileMode) {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("hack/verify-words.sh", script, 0o700)
	write(path, []byte(content), 0o600)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "verify-words.sh")).CombinedOutput()
	var lines []string
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if (err != nil) != (len(lines) > 0) {
		t.Fatalf("the check ended with %v and printed %q", err, lines)
	}
	return lines
}
