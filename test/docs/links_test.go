// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the references between documents, and those from comments to documents.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	// markdownLink is a link to another file or heading of the repository.
	markdownLink = regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	// citation is a document that a comment names, from the root of the repository.
	citation = regexp.MustCompile(`docs/[\w/-]+\.md(?:#[\w-]+)?`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	anchor   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	// dropped are the characters that headings lose in their anchors.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestReferencesHaveTargets(t *testing.T) {
	references := 0
	check := func(file, base, target string) {
		references++
		path, fragment, _ := strings.Cut(target, "#")
		if path == "" {
			path = file
		} else {
			path = filepath.Join(base, path)
		}
		content, err := os.ReadFile(path)
		if stat, statErr := os.Stat(path); statErr == nil && stat.IsDir() {
			return
		}
		switch {
		case err != nil:
			t.Errorf("%s: %s: %v", file, target, err)
		case fragment != "" && !anchors(string(content))[fragment]:
			t.Errorf("%s: %s has no heading with the anchor #%s", file, path, fragment)
		}
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "_output"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || (filepath.Ext(file) != ".md" && filepath.Ext(file) != ".go") {
			return nil //nolint:nilerr // sockets and the like are no documents
		}
		if filepath.Ext(file) == ".go" {
			for _, target := range citation.FindAllString(string(content), -1) {
				check(file, root, target)
			}
			return nil
		}
		for _, link := range markdownLink.FindAllStringSubmatch(code.ReplaceAllString(string(content), ""), -1) {
			check(file, filepath.Dir(file), link[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if references < 50 {
		t.Errorf("found %d references: want at least 50, or the expressions have stopped matching", references)
	}
}

// anchors returns the anchors of a document, as they are made from its headings.
func anchors(content string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(content, -1) {
		text := strings.ToLower(dropped.ReplaceAllString(m[1], ""))
		found[strings.ReplaceAll(strings.TrimSpace(text), " ", "-")] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(content, -1) {
		found[m[1]] = true
	}
	return found
}
