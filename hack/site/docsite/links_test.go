// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pageOfTest = `<!doctype html><html><head><title>A</title><meta name="source" content="docs/a.md">%s</head><body>
<main id="content"><article><h1 id="a">A</h1>
<details class="toc narrow">On this page</details>
<p>First <code>word</code>s.</p>
<h2 id="more">More <a class="anchor" href="#more" aria-label="Link">#</a></h2>
<table><tr><td>one</td><td>two</td></tr></table>
%s</article></main></body></html>`

// checkout writes a repository and its built pages, one of them with a link, and returns their directories.
func checkout(t *testing.T, source, head, body string) (string, string) {
	t.Helper()
	repository, built := t.TempDir(), filepath.Join(t.TempDir(), "pages")
	for name, content := range map[string]string{
		filepath.Join(repository, "docs/a.md"):          "# A\n\nFirst `word`s.\n\n## More\n\n" + source + "\n",
		filepath.Join(repository, "docs/new.md"):        "# New\n",
		filepath.Join(repository, "artifacts/set.yaml"): "",
		filepath.Join(built, "docs/a.html"):             fmt.Sprintf(pageOfTest, head, body),
		filepath.Join(built, "index.html"):              strings.ReplaceAll(fmt.Sprintf(pageOfTest, "", ""), "docs/a.md", "README.md"),
		filepath.Join(built, "docs/run.svg"):            `<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(#g)"/></svg>`,
	} {
		write(t, name, content)
	}
	return repository, built
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLinks has the message for each mistake, or none.
func TestLinks(t *testing.T) {
	for name, test := range map[string]struct{ source, head, body, want string }{
		"a page": {source: "[x](../README.md)", body: `<a href="../index.html" data-link="../README.md">x</a>`},
		"a heading": {
			source: "[x](../README.md#more)", body: `<a href="../index.html#more" data-link="../README.md#more">x</a>`,
		},
		"a heading of the same page": {source: "[x](#more)", body: `<a href="#more" data-link="#more">x</a>`},
		"a link to another host":     {source: "[x](https://kubernetes.io)", body: `<a href="https://kubernetes.io" data-link="https://kubernetes.io">x</a>`},
		"a picture":                  {source: "![x](run.svg)", body: `<img src="run.svg" data-link="run.svg">`},
		"the list of versions":       {body: `<a href="../../versions.html">x</a>`},
		"a file of the repository":   {source: "[x](../artifacts/set.yaml)", body: `<a href="https://h/artifacts/set.yaml" data-link="../artifacts/set.yaml" data-file="artifacts/set.yaml">x</a>`},
		"no such heading": {
			source: "[x](../README.md#less)", body: `<a href="../index.html#less" data-link="../README.md#less">x</a>`,
			want: "docs/a.md:7: ../README.md#less: README.md has no heading with the anchor #less",
		},
		"no such heading in the page": {
			source: "[x](#less)", body: `<a href="#less" data-link="#less">x</a>`,
			want: "docs/a.md:7: #less: docs/a.md has no heading with the anchor #less",
		},
		"no such file": {
			source: "[x](b.md)", body: `<a href="https://h/docs/b.md" data-link="b.md" data-file="docs/b.md">x</a>`,
			want: "docs/a.md:7: b.md: docs/b.md does not exist",
		},
		"a file outside of the repository": {
			source: "[x](../../b.md)", body: `<a href="https://h/../b.md" data-link="../../b.md" data-file="../b.md">x</a>`,
			want: "docs/a.md:7: ../../b.md: ../b.md is outside of the repository",
		},
		"a document that is not mounted": {
			source: "[x](new.md)", body: `<a href="https://h/docs/new.md" data-link="new.md" data-file="docs/new.md">x</a>`,
			want: "docs/a.md:7: new.md: docs/new.md is no page of the site; add it to the mounts of hack/site/theme/config/_default/hugo.yaml",
		},
		"an anchor that a heading has, too": {
			body: `<a id="more"></a>`,
			want: "docs/a.md: the anchor #more is there twice; rename the heading or the element",
		},
		"no such picture, which is also a link": {
			source: "![x](no.svg)", body: `<a href="no.svg" data-link="no.svg"><img src="no.svg" data-link="no.svg"></a>`,
			want: "docs/a.md:7: no.svg: docs/no.svg is not a file of the site",
		},
		"a broken link of the theme": {
			body: `<a href="gone.html">x</a>`,
			want: "docs/a.html: gone.html (from hack/site/theme): docs/gone.html is not a file of the site",
		},
		"a link from the root of the host": {
			body: `<a href="/docs/a.html">x</a>`,
			want: "docs/a.html: /docs/a.html (from hack/site/theme): a link must be relative, because a site may be below any path",
		},
		"a script of another host": {
			head: `<script src="https://cdn.example.com/x.js"></script>`,
			want: `docs/a.html: https://cdn.example.com/x.js (from hack/site/theme): the element "script" loads something from elsewhere; resources must be files of the site`,
		},
		"a font of another host": {
			head: `<link rel="stylesheet" href="//fonts.example.com/x.css">`,
			want: `docs/a.html: //fonts.example.com/x.css (from hack/site/theme): the element "link" loads something from elsewhere; resources must be files of the site`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository, built := checkout(t, test.source, test.head, test.body)
			pages, err := readPages(built)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(append(checkLinks(pages, built, repository), checkFiles(built)...), "\n")
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestFilesLoadNothing finds what style sheets and pictures would load.
func TestFilesLoadNothing(t *testing.T) {
	for name, content := range map[string]string{
		"a.css": `@import "b.css";`,
		"b.css": `body { background: url(https://example.com/x.svg#y) }`,
		"c.svg": `<svg xmlns="http://www.w3.org/2000/svg"><image href="https://example.com/x.png"/></svg>`,
		"d.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`,
	} {
		built := t.TempDir()
		write(t, filepath.Join(built, name), content)
		if got := checkFiles(built); len(got) != 1 || !strings.HasPrefix(got[0], name+": ") {
			t.Errorf("%s: got %q", content, got)
		}
	}
}
