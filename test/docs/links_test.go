// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the references between documents, and those from comments to documents.
package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	// markdownLink is a link to another file or heading of the repository, in a line or, as a definition, at its beginning.
	markdownLink = regexp.MustCompile(`(?m)\]\(([^)\s:]+)(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+([^\s:]+)(?:\s|$)`)
	// citation is a document that a comment names, from the root of the repository.
	citation = regexp.MustCompile(`(?:^|[^\w/.-])(docs/[\w/-]+\.md(?:#[\w-]+)?)`)
	comment  = regexp.MustCompile(`(?:^|\s)//.*`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	text     = regexp.MustCompile(`[^\n]`)
)

func TestReferencesHaveTargets(t *testing.T) {
	references := 0
	check := func(file string, line int, base, target string) {
		references++
		if reason := wrongReference(file, base, target); reason != "" {
			name, _ := filepath.Rel(root, file)
			t.Errorf("%s:%d: %s: %s", name, line, target, reason)
		}
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "_output"):
			return filepath.SkipDir
		case entry.IsDir() || (filepath.Ext(file) != ".md" && filepath.Ext(file) != ".go"):
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if filepath.Ext(file) == ".go" {
			for _, found := range citations(content, strings.HasSuffix(file, "_test.go")) {
				check(file, found.line, root, found.target)
			}
			return nil
		}
		for _, found := range links(content) {
			check(file, found.line, filepath.Dir(file), found.target)
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

type link struct {
	line   int
	target string
}

// links returns the links of a document to files and headings of the repository; what looks like one in code is none.
func links(content []byte) []link {
	prose := code.ReplaceAllFunc(content, func(found []byte) []byte { return text.ReplaceAll(found, []byte(" ")) })
	var found []link
	for _, at := range markdownLink.FindAllSubmatchIndex(prose, -1) {
		target := at[2:4]
		if target[0] < 0 {
			target = at[4:6]
		}
		found = append(found, link{line: lineOf(prose, at[0]), target: string(prose[target[0]:target[1]])})
	}
	return found
}

// citations returns the documents that a Go file names; in tests, where strings may name documents of the test, those in comments.
func citations(content []byte, test bool) []link {
	var found []link
	for i, line := range bytes.Split(content, []byte("\n")) {
		if test {
			line = comment.Find(line)
		}
		for _, match := range citation.FindAllSubmatch(line, -1) {
			found = append(found, link{line: i + 1, target: string(match[1])})
		}
	}
	return found
}

func lineOf(content []byte, at int) int {
	return bytes.Count(content[:at], []byte("\n")) + 1
}

// wrongReference says why a reference of a file leads nowhere; it is empty if it leads somewhere.
func wrongReference(file, base, target string) string {
	path, fragment, _ := strings.Cut(target, "#")
	if path == "" {
		path = file
	} else {
		path = filepath.Join(base, path)
	}
	name, _ := filepath.Rel(root, path)
	stat, err := os.Stat(path)
	switch {
	case !filepath.IsLocal(name):
		return name + " is outside of the repository"
	case err != nil:
		return name + " does not exist"
	case stat.IsDir():
		return ""
	}
	content, err := os.ReadFile(path)
	switch {
	case err != nil:
		return err.Error()
	case fragment != "" && filepath.Ext(path) == ".md" && !slices.Contains(anchors(string(content)), fragment):
		return name + " has no heading with the anchor #" + fragment
	}
	return ""
}

// TestWrongReferencesAreNamed has a mistake of each kind, and what looks like one.
func TestWrongReferencesAreNamed(t *testing.T) {
	readme := filepath.Join(root, "README.md")
	for target, want := range map[string]string{
		"docs/kubectl.md": "", "docs": "", "go.mod#L1": "", "#try-it": "", "docs/operations/backup.md#restore": "",
		"docs/no.md":            "docs/no.md does not exist",
		"../elsewhere.md":       "../elsewhere.md is outside of the repository",
		"#no":                   "README.md has no heading with the anchor #no",
		"docs/why.md#no":        "docs/why.md has no heading with the anchor #no",
		"docs/why.md#Causes-no": "docs/why.md has no heading with the anchor #Causes-no",
	} {
		if got := wrongReference(readme, root, target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	document := "[a](b.md) and [c](d.md#e \"title\")\n`[no](f.md)` [no](https://g.h)\n```\n[no](i.md)\n```\n[j]: k.md\n![l](m.svg)\n"
	want := []link{{1, "b.md"}, {1, "d.md#e"}, {6, "k.md"}, {7, "m.svg"}}
	if got := links([]byte(document)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	program := "x := \"docs/a.md\"\ny := \"https://h/docs/b.md\" // docs/why.md\n"
	if got, want := citations([]byte(program), false), []link{{1, "docs/a.md"}, {2, "docs/why.md"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := citations([]byte(program), true), []link{{2, "docs/why.md"}}; !slices.Equal(got, want) {
		t.Errorf("in a test: got %v, want %v", got, want)
	}
}
