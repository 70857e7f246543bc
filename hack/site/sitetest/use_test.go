// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sitetest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// search opens a page, types into the search field, which a key has reached, and waits for results.
func search(p *tab, address, text string) {
	p.Helper()
	p.open(address)
	p.press("/", 191)
	var focused string
	p.ask(`document.activeElement.id`, &focused)
	if focused != "query" {
		p.Fatalf("the key / focuses %q, want the search field", focused)
	}
	p.must("Input.insertText", map[string]any{"text": text})
	p.until(`!document.querySelector(".results").hidden`)
}

// TestSearch finds a section by words of its text, and follows the first result with the keyboard; also from files, without a server.
func TestSearch(t *testing.T) {
	directory, address := site(t)
	absolute, err := filepath.Abs(directory)
	if err != nil {
		t.Fatal(err)
	}
	p := startBrowser(t).newTab(t)
	for name, base := range map[string]string{"served": address, "from files": "file://" + absolute} {
		for _, width := range widths {
			p.size(width, 900)
			search(p, base+"/"+newest+"/docs/operations/runbooks/JobSetStoreRefused.html", "Backups  outside clust")
			var first struct{ Text, Href string }
			p.ask(`(({innerText, href}) => ({text: innerText, href}))(document.querySelector(".results a"))`, &first)
			if want := base + "/" + newest + "/docs/operations/backup.html#backups-outside-of-the-cluster"; first.Href != want {
				t.Fatalf("%s, %d pixels: the first result is %q, %s, want %s", name, width, first.Text, first.Href, want)
			}
			var inside bool
			p.ask(`(({left, right}) => left >= 0 && right <= document.documentElement.clientWidth)(document.querySelector(".results").getBoundingClientRect())`, &inside)
			if !inside {
				t.Errorf("%s, %d pixels: the results are not in the window", name, width)
			}
			if name == "served" {
				p.picture(fmt.Sprintf("search-%d", width))
			}
			p.press("ArrowDown", 40)
			p.press("Enter", 13)
			p.until(`location.pathname.endsWith("/docs/operations/backup.html")`)
			p.loaded()
			var heading string
			p.ask(`document.querySelector(":target").innerText`, &heading)
			if !strings.HasPrefix(heading, "Backups outside of the cluster") {
				t.Errorf("%s: the result leads to %q", name, heading)
			}
		}
	}
}

// TestSearchForACommonWord shows the best results first: sections with the word in their heading, or in the title of
// their page.
func TestSearchForACommonWord(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	p.size(1440, 900)
	p.scheme("dark")
	search(p, address+"/"+newest+"/docs/index.html", "restart")
	p.picture("search-many-dark")
	var got struct {
		Status string
		Names  []string
	}
	p.ask(`({
		status: document.querySelector(".results [role=status]").innerText,
		names: [...document.querySelectorAll(".results a")].map((e) => e.querySelector("strong").innerText + (e.querySelector(".page")?.innerText ?? "")),
	})`, &got)
	if len(got.Names) != 20 || !strings.HasSuffix(got.Status, " sections, the best 20 are shown") {
		t.Fatalf("%d results; %s", len(got.Names), got.Status)
	}
	for _, name := range got.Names {
		if !strings.Contains(strings.ToLower(name), "restart") {
			t.Errorf("%q is among the best results", name)
		}
	}
}

// TestSearchWithoutResults says that there are none, and closes with Escape.
func TestSearchWithoutResults(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	search(p, address+"/"+newest+"/index.html", "xylophone (")
	var got struct {
		Status string
		Found  int
	}
	p.ask(`({status: document.querySelector(".results [role=status]").innerText, found: document.querySelectorAll(".results a").length})`, &got)
	if got.Found != 0 || got.Status != "No section has all of these words." {
		t.Errorf("got %+v", got)
	}
	p.press("Escape", 27)
	p.until(`document.querySelector(".results").hidden && document.activeElement.id === "query"`)
}

// TestVersionsOfPages reads a page of an old release: it names the newest release, and leads to the same page of other versions.
func TestVersionsOfPages(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	p.open(address + "/" + oldest + "/docs/helm.html")
	var got struct {
		Summary, Note string
		Names, Links  []string
	}
	p.ask(`({
		summary: document.querySelector(".versions summary").innerText.trim(),
		note: document.querySelector(".outdated").innerText,
		names: [...document.querySelectorAll(".versions a")].map((a) => a.textContent),
		links: [...document.querySelectorAll(".versions a, .outdated a")].map((a) => a.href),
	})`, &got)
	if !strings.HasSuffix(got.Summary, oldest) || got.Note != "This page is about "+oldest+". The newest release is "+newest+"." {
		t.Errorf("the page says %q and %q", got.Summary, got.Note)
	}
	if names := strings.Join(got.Names, " "); names != strings.Join([]string{next, newest, oldest, "All versions"}, " ") {
		t.Errorf("the list of versions has %q", names)
	}
	if links := strings.Join(got.Links, " "); links != strings.Join([]string{
		address + "/" + next + "/docs/helm.html", address + "/" + newest + "/docs/helm.html", address + "/" + oldest + "/docs/helm.html",
		address + "/versions.html", address + "/" + newest + "/docs/helm.html",
	}, " ") {
		t.Errorf("the versions are %q", links)
	}
	for _, version := range []string{newest, next} {
		p.open(address + "/" + version + "/docs/helm.html")
		var hidden bool
		p.ask(`document.querySelector(".outdated").hidden`, &hidden)
		if !hidden {
			t.Errorf("a page of %s says that it is outdated", version)
		}
	}
	p.must("Page.navigate", map[string]any{"url": address + "/"})
	p.until(`location.pathname.endsWith("/` + newest + `/")`) // the server of the test drops index.html
	p.loaded()
}

// TestKeyboard reaches the content and the pages without a mouse.
func TestKeyboard(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	p.size(360, 900)
	p.open(address + "/" + newest + "/docs/helm.html")
	p.press("Tab", 9)
	var skip struct {
		Text    string
		Top     float64
		Outline string
	}
	const focused = `((e) => ({text: e.innerText, top: e.getBoundingClientRect().top, outline: getComputedStyle(e).outlineStyle}))(document.activeElement)`
	p.ask(focused, &skip)
	if skip.Text != "Skip to content" || skip.Top < 0 || skip.Outline == "none" {
		t.Errorf("the first key Tab reaches %+v", skip)
	}
	p.press("Enter", 13)
	p.until(`document.activeElement.id === "content"`)
	p.open(address + "/" + newest + "/docs/helm.html")
	p.press("Tab", 9)
	p.press("Tab", 9)
	p.press("Enter", 13)
	p.until(`document.querySelector(".menu[aria-expanded=true]") === document.activeElement && document.querySelector("#pages").clientHeight > 100`)
	p.picture("menu-360")
}

// TestColors computes the contrast of texts with what is behind them, in both schemes. WCAG wants 4.5.
func TestColors(t *testing.T) {
	_, address := site(t)
	p := startBrowser(t).newTab(t)
	p.size(1440, 900)
	backgrounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.open(address + "/" + newest + "/docs/installation.html")
		var got struct {
			Background string
			Checked    int
			Low        []string
		}
		p.ask(contrasts, &got)
		backgrounds[scheme] = got.Background
		if got.Checked < 100 || len(got.Low) > 0 {
			t.Errorf("%s: %d texts; without contrast: %q", scheme, got.Checked, got.Low)
		}
	}
	if backgrounds["light"] == backgrounds["dark"] {
		t.Errorf("both schemes have the background %s", backgrounds["light"])
	}
}

const contrasts = `(() => {
	const parse = (color) => color.match(/[\d.]+/g).map(Number);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const color = parse(getComputedStyle(e).backgroundColor);
			if (color.length === 3 || color[3] > 0) return color;
		}
		return [255, 255, 255];
	};
	const light = (color) => {
		const [r, g, b] = color.slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const texts = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
		[...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== ""));
	const low = texts.filter((e) => {
		const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
		return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
	});
	return { background: getComputedStyle(document.body).backgroundColor, checked: texts.length, low: low.map((e) => e.outerHTML.slice(0, 100)) };
})()`
