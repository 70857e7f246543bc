// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/semver"
)

// version is the documentation of a version, in a directory of its name.
type version struct {
	Name string `json:"name"`
	// Pages are the pages of the version, so that a reader stays on a page that another version has, too.
	Pages []string `json:"pages"`
}

// writeVersions writes what pages of all versions share: the list of versions as a script and as a page, and the page that leads to the
// newest version.
func writeVersions(output string) error {
	versions, err := readVersions(output)
	if err != nil {
		return err
	}
	newest := newestRelease(versions)
	if err := writeCall(filepath.Join(output, "versions.js"), "siteVersions", versions, newest); err != nil {
		return err
	}
	first := newest
	if first == "" {
		first = versions[0].Name
	}
	for name, redirect := range map[string]string{"index.html": first + "/index.html", "versions.html": ""} {
		var content bytes.Buffer
		values := map[string]any{"versions": versions, "newest": newest, "first": first, "redirect": redirect}
		if err := listing.Execute(&content, values); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(output, name), content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readVersions returns the versions in a directory, the newest first.
func readVersions(output string) ([]version, error) {
	directories, err := filepath.Glob(filepath.Join(output, "v*", "index.html"))
	if err != nil {
		return nil, err
	}
	var versions []version
	for _, index := range directories {
		directory := filepath.Dir(index)
		if !semver.IsValid(filepath.Base(directory)) {
			continue
		}
		v := version{Name: filepath.Base(directory)}
		err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" {
				return err
			}
			relative, err := filepath.Rel(directory, name)
			v.Pages = append(v.Pages, filepath.ToSlash(relative))
			return err
		})
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s has no version", output)
	}
	slices.SortFunc(versions, func(a, b version) int { return semver.Compare(b.Name, a.Name) })
	return versions, nil
}

// newestRelease returns the newest version that is no prerelease, or an empty string if there is none.
func newestRelease(versions []version) string {
	for _, v := range versions {
		if semver.Prerelease(v.Name) == "" {
			return v.Name
		}
	}
	return ""
}

var listing = template.Must(template.New("versions").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>jobset-apiserver: versions of the documentation</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{- with .redirect}}
<meta http-equiv="refresh" content="0; url={{.}}">
{{- end}}
<link rel="icon" href="{{.first}}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{{.first}}/site.css">
</head>
<body>
<header class="top"><a class="brand" href="{{.first}}/index.html">jobset-apiserver</a></header>
<main>
<article>
<h1>Versions of the documentation</h1>
<ul>
{{- range .versions}}
<li><a href="{{.Name}}/index.html">{{.Name}}</a>{{if eq .Name $.newest}}, the newest release{{end}}</li>
{{- end}}
</ul>
</article>
</main>
</body>
</html>
`))
