// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// page is a page as Hugo has built it.
type page struct {
	// path is the file of the page, relative to the directory of the version.
	path string
	// source is the file of the repository that the page is made from.
	source   string
	title    string
	sections []section
	links    []link
	anchors  map[string]bool
	// repeated are the anchors that are on the page more than once.
	repeated []string
}

// section is what follows a heading, up to the next one. The first section of a page has no anchor.
type section struct {
	anchor, heading, text string
}

// link is a reference from a page to something else.
type link struct {
	// element is the name of the element that refers: only a link of an "a" may lead to another host.
	element string
	target  string
	// written is the link in the source; empty for the links of the theme.
	written string
	// file is the file of the repository to which the link leads, if it leads there.
	file string
}

// references are the attributes that name something to load or to go to.
var references = []string{"href", "src", "srcset", "data", "poster", "action"}

func readPages(directory string) ([]page, error) {
	var pages []page
	err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" {
			return err
		}
		relative, err := filepath.Rel(directory, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p, err := parsePage(filepath.ToSlash(relative), string(content))
		pages = append(pages, p)
		return err
	})
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("%s has no pages", directory)
	}
	return pages, err
}

func parsePage(path, content string) (page, error) {
	document, err := html.Parse(strings.NewReader(content))
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", path, err)
	}
	p := page{path: path, anchors: map[string]bool{}}
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		p.note(node)
	}
	if p.source == "" || p.title == "" {
		return p, fmt.Errorf("%s: %w", path, errors.New("the page must have a meta element \"source\" and an article with a first heading"))
	}
	return p, nil
}

// note remembers what an element says about the page.
func (p *page) note(node *html.Node) {
	if id := attribute(node, "id"); id != "" {
		if p.anchors[id] {
			p.repeated = append(p.repeated, id)
		}
		p.anchors[id] = true
	}
	for _, name := range references {
		if target := attribute(node, name); target != "" {
			p.links = append(p.links, link{
				element: node.Data, target: target, written: attribute(node, "data-link"), file: attribute(node, "data-file"),
			})
		}
	}
	switch {
	case node.Data == "meta" && attribute(node, "name") == "source":
		p.source = attribute(node, "content")
	case node.Data == "article":
		p.title, p.sections = sectionsOf(node)
	}
}

// sectionsOf returns the first heading of an article, and its text divided by the headings of all levels.
func sectionsOf(article *html.Node) (string, []section) {
	title := ""
	var sections []section
	var text strings.Builder
	finish := func() {
		if len(sections) > 0 {
			sections[len(sections)-1].text = strings.Join(strings.Fields(text.String()), " ")
		}
		text.Reset()
	}
	for child := range article.ChildNodes() {
		switch {
		case isHeading(child) && title == "":
			title = textOf(child)
			finish()
			sections = append(sections, section{})
		case isHeading(child):
			finish()
			sections = append(sections, section{anchor: attribute(child, "id"), heading: textOf(child)})
		default:
			writeText(&text, child)
		}
	}
	finish()
	return title, sections
}

func isHeading(node *html.Node) bool {
	return node.Type == html.ElementNode && slices.Contains([]string{"h1", "h2", "h3", "h4", "h5", "h6"}, node.Data)
}

func textOf(node *html.Node) string {
	var text strings.Builder
	writeText(&text, node)
	return strings.Join(strings.Fields(text.String()), " ")
}

// inline are elements that are not followed by a space.
var inline = []string{"a", "code", "em", "strong", "span", "b", "i", "del"}

// writeText writes the text of a node, without the links beside headings and the list of headings.
func writeText(text *strings.Builder, node *html.Node) {
	if node.Type == html.TextNode {
		text.WriteString(node.Data)
		return
	}
	if class := attribute(node, "class"); class == "anchor" || strings.HasPrefix(class, "toc ") {
		return
	}
	for child := range node.ChildNodes() {
		writeText(text, child)
	}
	if !slices.Contains(inline, node.Data) {
		text.WriteByte(' ')
	}
}

func attribute(node *html.Node, name string) string {
	for _, found := range node.Attr {
		if found.Key == name {
			return found.Val
		}
	}
	return ""
}
