// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sitetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesInSources builds a copy of the sources with mistakes, and reads the messages.
func TestMistakesInSources(t *testing.T) {
	checkout := copyOfSources(t)
	kubectl := read(t, "docs/kubectl.md")
	line := strings.Count(kubectl, "\n") + 2
	for name, test := range map[string]struct {
		file, content string
		want          []string
	}{
		"broken links": {
			"docs/kubectl.md", kubectl + "\n[a](no.md) [b](why.md#no)\n[c](../artifacts/no.yaml) ![picture](no.svg)\n",
			[]string{
				fmt.Sprintf("docs/kubectl.md:%d: no.md: docs/no.md does not exist\n", line),
				fmt.Sprintf("docs/kubectl.md:%d: why.md#no: docs/why.md has no heading with the anchor #no\n", line),
				fmt.Sprintf("docs/kubectl.md:%d: ../artifacts/no.yaml: artifacts/no.yaml does not exist\n", line+1),
				fmt.Sprintf("docs/kubectl.md:%d: no.svg: docs/no.svg is not a file of the site\n", line+1),
				"the documentation has mistakes: 4; nothing was written\n",
			},
		},
		"a new page": {
			"docs/new.md", "# New\n",
			[]string{"docs/new.md is in no group of the navigation: add it to hack/site/theme/config/_default/hugo.yaml\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(checkout, test.file)
			before, err := os.ReadFile(path)
			if err := os.WriteFile(path, []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			out, failed := exec.Command(filepath.Join(checkout, "hack", "docs.sh")).CombinedOutput()
			if failed == nil {
				t.Errorf("the pages were built: %s", out)
			}
			var missing []string
			for _, want := range test.want {
				if !strings.Contains(string(out), want) {
					missing = append(missing, want)
				}
			}
			if len(missing) > 0 {
				t.Errorf("no message %q in\n%s", missing, out)
			}
			if left, _ := filepath.Glob(filepath.Join(checkout, "_output", "docs", "*")); len(left) > 0 {
				t.Errorf("the build has left %q", left)
			}
			if err != nil {
				_ = os.Remove(path)
			} else if err := os.WriteFile(path, before, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// copyOfSources copies what becomes pages and what builds them. The rest of the repository, to which pages have links, is linked.
func copyOfSources(t *testing.T) string {
	t.Helper()
	checkout := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(absolute, entry.Name()), filepath.Join(checkout, entry.Name())
		switch name := entry.Name(); {
		case name == "docs" || name == "hack":
			err = os.CopyFS(to, os.DirFS(from))
		case filepath.Ext(name) == ".md":
			err = os.WriteFile(to, []byte(read(t, name)), 0o644) // Hugo does not follow links
		case name != "_output" && !strings.HasPrefix(name, "."):
			err = os.Symlink(from, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return checkout
}
