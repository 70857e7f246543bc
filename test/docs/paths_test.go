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
		"pkg/apiserver/groups/groups.go":        "func All() Groups {",
		"pkg/controller/options/controllers.go": "var known = []descriptor{",
		"pkg/kubectl/root.go":                   "var kinds = []kind.Kind{",
	} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.Contains(string(content), list) {
			t.Errorf("%s does not have %q (%v)", file, list, err)
		}
	}
}

// TestTreeIsDocumented compares the tables about the tree with the directories: each path exists, and each directory of
// the first two levels below pkg and of the first one below cmd and test stands there or has one above it that does.
func TestTreeIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/development.md"))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, _ := strings.Cut(string(page), "\n## Make targets")
	documented := map[string]bool{}
	for _, match := range path.FindAllStringSubmatch(tree, -1) {
		documented[match[1]] = true
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
	}
	for _, pattern := range []string{"cmd/*", "test/*", "pkg/*", "pkg/*/*"} {
		directories, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(directories) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, directory := range directories {
			name, err := filepath.Rel(root, directory)
			if err != nil {
				t.Fatal(err)
			}
			if !hasPackages(directory) || documented[name] {
				continue
			}
			above := filepath.Dir(name)
			if pattern == "pkg/*" && !hasGoFiles(directory) || documented[above] && !hasSubjects[above] {
				continue
			}
			t.Errorf("docs/development.md does not name %s", name)
		}
	}
}

// hasSubjects are the directories whose every package has a row.
var hasSubjects = map[string]bool{"pkg/apiserver": true, "pkg/controller": true, "pkg/kubectl": true, "pkg/registry": true, "pkg/apis": true}

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
