// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// written beside the directories of the versions.
const listOfVersions = "../versions.html"

// checkLinks returns a message for each link that leads nowhere, for each anchor that is not unique, and for each resource of another host.
func checkLinks(pages []page, built, source string) []string {
	byPath := map[string]page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	c := checker{pages: byPath, built: built, source: source, lines: map[string][]string{}}
	var problems []string
	for _, p := range pages {
		for _, id := range p.repeated {
			problems = append(problems, fmt.Sprintf("%s: the anchor #%s is there twice; rename the heading or the element", p.source, id))
		}
		for _, l := range p.links {
			if reason := c.reason(p, l); reason != "" {
				problem := c.place(p, l) + ": " + reason
				// A picture and the link around it are one mistake.
				if !slices.Contains(problems, problem) {
					problems = append(problems, problem)
				}
			}
		}
	}
	return problems
}

type checker struct {
	pages         map[string]page
	built, source string
	lines         map[string][]string
}

// reason says why a link is wrong; it is empty if it is not.
func (c checker) reason(p page, l link) string {
	target, err := url.Parse(l.target)
	switch {
	case err != nil:
		return err.Error()
	case l.file != "":
		return c.wrongFile(l.file)
	case target.Host != "" || target.Scheme != "":
		if l.element == "a" {
			return ""
		}
		return fmt.Sprintf("the element %q loads something from elsewhere; resources must be files of the site", l.element)
	case strings.HasPrefix(target.Path, "/"):
		return "a link must be relative, because a site may be below any path"
	}
	return c.wrongPage(p, target)
}

// wrongPage says why a relative link to a page, a picture or a heading is wrong.
func (c checker) wrongPage(p page, target *url.URL) string {
	name := p.path
	if target.Path != "" {
		name = path.Join(path.Dir(p.path), target.Path)
	}
	if name == listOfVersions {
		return ""
	}
	to, found := c.pages[name]
	if !found {
		if info, err := os.Stat(filepath.Join(c.built, name)); err != nil || info.IsDir() {
			return name + " is not a file of the site"
		}
	}
	if target.Fragment != "" && !to.anchors[target.Fragment] {
		return fmt.Sprintf("%s has no heading with the anchor #%s", to.source, target.Fragment)
	}
	return ""
}

// wrongFile says why a link to a file of the repository is wrong.
func (c checker) wrongFile(file string) string {
	if !filepath.IsLocal(file) {
		return file + " is outside of the repository"
	}
	if _, err := os.Stat(filepath.Join(c.source, file)); err != nil {
		return file + " does not exist"
	}
	if strings.HasPrefix(file, "docs/") && path.Ext(file) == ".md" {
		return file + " is no page of the site; add it to the mounts of hack/site/theme/config/_default/hugo.yaml"
	}
	return ""
}

// place returns where a link is: the line of the source, or the page if the link is from the theme.
func (c checker) place(p page, l link) string {
	if l.written == "" {
		return fmt.Sprintf("%s: %s (from hack/site/theme)", p.path, l.target)
	}
	lines, found := c.lines[p.source]
	if !found {
		content, err := os.ReadFile(filepath.Join(c.source, p.source))
		if err == nil {
			lines = strings.Split(string(content), "\n")
		}
		c.lines[p.source] = lines
	}
	for i, line := range lines {
		if strings.Contains(line, "]("+l.written) {
			return fmt.Sprintf("%s:%d: %s", p.source, i+1, l.written)
		}
	}
	return p.source + ": " + l.written
}

// elsewhere matches what a style sheet or a picture loads from other files.
var elsewhere = regexp.MustCompile(`@import|url\([^#)][^)]*\)|(?:href|src)="(?:https?:)?//[^"]*"|<script|<foreignObject`)

// checkFiles returns a message for each style sheet or picture that loads something.
func checkFiles(built string) []string {
	var problems []string
	err := filepath.WalkDir(built, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || (filepath.Ext(name) != ".css" && filepath.Ext(name) != ".svg") {
			return err
		}
		content, err := os.ReadFile(name)
		if found := elsewhere.FindString(string(content)); found != "" {
			relative, _ := filepath.Rel(built, name)
			problems = append(problems, fmt.Sprintf("%s: %s: the file loads something; it must have all it needs", relative, found))
		}
		return err
	})
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
