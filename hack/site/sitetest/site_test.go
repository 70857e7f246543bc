// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sitetest builds the pages of the documentation and reads them in a browser.
package sitetest

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const root = "../../.."

// The versions of the site that the tests read: an old release, and the newest one, which most tests look at.
const oldest, newest, next = "v0.1.0", "v0.2.0", "v0.3.0-beta.12"

var widths = []int{360, 768, 1440}

// buildSite builds three versions, once for all tests, in a directory that TestMain removes.
var buildSite = sync.OnceValues(func() (string, error) {
	for _, version := range []string{oldest, newest, next} {
		cmd := exec.Command(filepath.Join(root, "hack", "docs.sh"))
		cmd.Env = append(os.Environ(), "VERSION="+version, "DOCS_OUTPUT="+siteDirectory)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("hack/docs.sh: %w\n%s", err, out)
		}
	}
	return siteDirectory, nil
})

var siteDirectory string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "docs")
	if err != nil {
		panic(err)
	}
	siteDirectory = directory
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

// site returns the directory of the site and the address at which it is served, below a path, as some hosts do.
func site(t *testing.T) (string, string) {
	t.Helper()
	directory, err := buildSite()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix("/some/path", http.FileServer(http.Dir(directory))))
	t.Cleanup(server.Close)
	return directory, server.URL + "/some/path"
}

// pagesOf returns the pages of a version, relative to its directory.
func pagesOf(t *testing.T, directory, version string) []string {
	t.Helper()
	var pages []string
	err := fs.WalkDir(os.DirFS(filepath.Join(directory, version)), ".", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".html" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil || len(pages) < 50 {
		t.Fatalf("found %d pages, want at least 50 (%v)", len(pages), err)
	}
	return pages
}

// layout is what a page says about itself.
type layout struct {
	Width, Content int
	// Bar is the height of the bar at the top, which has at most two rows.
	Bar         float64
	Wide        []string
	Headings    int
	Landmarks   []string
	Broken      []string
	Unreachable []string
}

const lookAtLayout = `(() => {
	const own = (element) => element.closest("pre, .table, .picture, .results, .versions ul, .hint, .skip") === null;
	const width = document.documentElement.clientWidth;
	return {
		width, content: document.documentElement.scrollWidth,
		wide: [...document.querySelectorAll("body *")].filter((e) => own(e) && e.getBoundingClientRect().right > width + 1).map((e) => e.outerHTML.slice(0, 120)),
		bar: document.querySelector(".top").getBoundingClientRect().height,
		headings: document.querySelectorAll("h1").length,
		landmarks: ["header", "nav", "main", "search", "footer"].filter((name) => document.querySelector(name) === null),
		broken: [...document.images].filter((image) => image.naturalWidth === 0 || !image.alt).map((image) => image.src),
		unreachable: [...document.querySelectorAll("pre, .table")].filter((e) => e.scrollWidth > e.clientWidth && e.tabIndex < 0).map((e) => e.outerHTML.slice(0, 120)),
	};
})()`

// TestPages opens every page at three widths.
func TestPages(t *testing.T) {
	directory, address := site(t)
	p := startBrowser(t).newTab(t)
	for _, width := range widths {
		p.size(width, 900)
		pages := []string{next + "/index.html"} // the name of this version takes most room
		for _, page := range pagesOf(t, directory, newest) {
			pages = append(pages, newest+"/"+page)
		}
		for _, page := range pages {
			p.open(address + "/" + page)
			var got layout
			p.ask(lookAtLayout, &got)
			if got.Content > got.Width || len(got.Wide) > 0 {
				t.Errorf("%s, %d pixels: the page is %d pixels wide; wider than the window: %q", page, got.Width, got.Content, got.Wide)
			}
			if rows := map[bool]float64{true: 2, false: 1}[width < 600]; got.Bar > rows*56 {
				t.Errorf("%s, %d pixels: the bar at the top is %v pixels high", page, got.Width, got.Bar)
			}
			if got.Headings != 1 || len(got.Landmarks) > 0 || len(got.Broken) > 0 || len(got.Unreachable) > 0 {
				t.Errorf("%s, %d pixels: %d first headings; without %q; pictures that fail or have no text: %q; cannot be scrolled with the keyboard: %q",
					page, got.Width, got.Headings, got.Landmarks, got.Broken, got.Unreachable)
			}
			p.mu.Lock()
			for _, request := range p.requests {
				if !strings.HasPrefix(request, address+"/") {
					t.Errorf("%s asks another host: %s", page, request)
				}
			}
			if len(p.requests) < 5 || len(p.problems) > 0 {
				t.Errorf("%s, %d pixels: %d requests; %q", page, width, len(p.requests), p.problems)
			}
			p.mu.Unlock()
		}
	}
}

// TestPictures saves pages for looking at.
func TestPictures(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	for _, width := range widths {
		for _, scheme := range []string{"light", "dark"} {
			p.size(width, 1100)
			p.scheme(scheme)
			for name, page := range map[string]string{
				"home": "index.html", "actions": "docs/actions.html", "policies": "docs/failure-policies.html", "reference": "docs/reference/jobset.html#counters",
				"runbook": "docs/operations/runbooks/JobSetStoreRefused.html", "performance": "docs/performance.html", "index": "docs/index.html",
			} {
				p.open(address + "/" + newest + "/" + page)
				p.picture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
		}
	}
}
