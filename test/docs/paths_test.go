// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
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
