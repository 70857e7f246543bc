// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// path is a file or directory of the repository in backticks.
var path = regexp.MustCompile("`((?:pkg|test|docs|artifacts|hack|cmd)/[^`*]+)`")

// TestPathsOfAKindExist tries every path of the page about adding a kind with the words of JobSet.
func TestPathsOfAKindExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/adding-a-kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("<group>", "jobset", "<version>", "v1alpha2", "<kind>", "jobset", "<resource>", "jobset")
	paths := path.FindAllStringSubmatch(string(page), -1)
	for _, match := range paths {
		if _, err := os.Stat(filepath.Join(root, words.Replace(match[1]))); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
	}
	if len(paths) < 40 {
		t.Errorf("found %d paths: want at least 40, or the expression has stopped matching", len(paths))
	}
}

// TestListsOfKindsExist checks the names of the lists that a kind is added to.
func TestListsOfKindsExist(t *testing.T) {
	for file, list := range map[string]string{
		"pkg/apis/groups_test.go":               "var groups = map[string]group{",
		"pkg/apiserver/apigroups/apigroups.go":  "func All() List {",
		"pkg/controller/options/controllers.go": "var known = []descriptor{",
		"pkg/kubectl/root.go":                   "var kinds = []kind.Kind{",
	} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.Contains(string(content), list) {
			t.Errorf("%s does not have %q (%v)", file, list, err)
		}
	}
}

// TestTreeIsDocumented compares the tables about the tree with the directories: each path exists, and each directory with Go files
// has a row: two levels below pkg, and one below cmd, hack and test. A package directly below pkg has a row as well.
func TestTreeIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, match := range path.FindAllStringSubmatch(treeOf(t), -1) {
		documented[match[1]] = true
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
	}
	for pattern, has := range map[string]func(string) bool{
		"cmd/*": hasPackages, "hack/*": hasPackages, "test/*": hasPackages, "pkg/*": hasGoFiles, "pkg/*/*": hasPackages,
	} {
		directories, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(directories) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, directory := range directories {
			name, err := filepath.Rel(root, directory)
			if err != nil {
				t.Fatal(err)
			}
			if has(directory) && !documented[name] && !oneRow[filepath.Dir(name)] {
				t.Errorf("docs/development.md does not name %s", name)
			}
		}
	}
}

// oneRow are the directories that have one row with all that is below them.
var oneRow = map[string]bool{"pkg/generated": true}

// TestQuestionsHaveAnswers checks the list of questions about the tree: every one has a path, which TestTreeIsDocumented looks for.
func TestQuestionsHaveAnswers(t *testing.T) {
	_, section, found := strings.Cut(treeOf(t), "\n## Where is it done?\n")
	if !found {
		t.Fatal("docs/development.md has no list of questions")
	}
	questions := 0
	for line := range strings.Lines(section) {
		question, answer, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !strings.HasSuffix(question, "? ") {
			continue
		}
		questions++
		if !path.MatchString(answer) {
			t.Errorf("no path answers %q", strings.TrimSpace(question))
		}
	}
	if questions < 15 {
		t.Errorf("found %d questions: want at least 15", questions)
	}
}

// treeOf returns the part of the page for developers that is about the tree.
func treeOf(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/development.md"))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, _ := strings.Cut(string(page), "\n## Make targets")
	return tree
}

func hasGoFiles(directory string) bool {
	files, _ := filepath.Glob(filepath.Join(directory, "*.go"))
	return len(files) > 0
}

// hasPackages returns whether there are Go files in the directory or below it.
func hasPackages(directory string) bool {
	found := false
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return false
	}
	_ = filepath.WalkDir(directory, func(name string, _ fs.DirEntry, _ error) error {
		found = found || strings.HasSuffix(name, ".go")
		return nil
	})
	return found
}
