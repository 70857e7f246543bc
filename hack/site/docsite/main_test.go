// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// build runs the command on a checkout whose page has a body.
func build(t *testing.T, output, version, body string) error {
	t.Helper()
	repository, built := checkout(t, "", "", body)
	return run([]string{"-pages", built, "-source", repository, "-output", output, "-version", version})
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestSectionsAreIndexed checks which text of a page can be found, below which heading.
func TestSectionsAreIndexed(t *testing.T) {
	output := t.TempDir()
	if err := build(t, output, "v0.1.0", ""); err != nil {
		t.Fatal(err)
	}
	index := read(t, filepath.Join(output, "v0.1.0", "search-index.js"))
	want := `{"path":"docs/a.html","title":"A","sections":[["","","First words."],["more","More","one two"]]}`
	if !strings.HasPrefix(index, "siteSearchIndex([") || !strings.Contains(index, want) {
		t.Errorf("got  %s\nwant %s", index, want)
	}
}

// TestVersionsAreListed builds versions in any order, one of them twice.
func TestVersionsAreListed(t *testing.T) {
	output := t.TempDir()
	write(t, filepath.Join(output, "vendor", "index.html"), "not a version")
	redirects := []string{"v0.2.0-rc.1", "v0.2.0-rc.1", "v0.1.0", "v0.10.0", "v0.10.0"}
	for i, version := range []string{"v0.2.0-rc.1", "v0.2.0-rc.1", "v0.1.0", "v0.10.0", "v0.9.0"} {
		if err := build(t, output, version, ""); err != nil {
			t.Fatal(err)
		}
		if index := read(t, filepath.Join(output, "index.html")); !strings.Contains(index, `content="0; url=`+redirects[i]+`/index.html"`) {
			t.Errorf("after %s, index.html does not lead to %s: %s", version, redirects[i], index)
		}
	}
	versions, err := readVersions(output)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.Name)
		if !slices.Equal(v.Pages, []string{"docs/a.html", "index.html"}) {
			t.Errorf("%s has the pages %q", v.Name, v.Pages)
		}
	}
	if got := strings.Join(names, " "); got != "v0.10.0 v0.9.0 v0.2.0-rc.1 v0.1.0" {
		t.Errorf("the versions are %s", got)
	}
	if list := read(t, filepath.Join(output, "versions.html")); strings.Contains(list, "refresh") || strings.Count(list, "<li>") != 4 {
		t.Errorf("the list of versions is %s", list)
	}
	if script := read(t, filepath.Join(output, "versions.js")); !strings.HasSuffix(script, `, "v0.10.0");`+"\n") {
		t.Errorf("versions.js is %s", script)
	}
}

// TestNothingIsWrittenAfterMistakes checks the messages, and that an earlier build of the version stays.
func TestNothingIsWrittenAfterMistakes(t *testing.T) {
	output := t.TempDir()
	if err := build(t, output, "v0.1.0", "<p>earlier</p>"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ version, body, want string }{
		"no version":       {"main", "", `VERSION must be a version such as v0.1.0 or v0.2.0-rc.1, not "main"`},
		"a short version":  {"v1", "", `VERSION must be a version such as v0.1.0 or v0.2.0-rc.1, not "v1"`},
		"a path":           {"v0.1.0/../x", "", `VERSION must be a version such as v0.1.0 or v0.2.0-rc.1, not "v0.1.0/../x"`},
		"two broken links": {"v0.1.0", `<a href="x.html">x</a><a href="y.html">y</a>`, "the documentation has mistakes: 2; nothing was written"},
		"no first heading": {"v0.1.0", `<article><p>text</p></article>`, `docs/a.html: the page must have a meta element "source" and an article with a first heading`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := build(t, output, test.version, test.body); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if page := read(t, filepath.Join(output, "v0.1.0", "docs", "a.html")); !strings.Contains(page, "earlier") {
				t.Error("the earlier build is gone")
			}
		})
	}
}
