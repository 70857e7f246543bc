// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package licenses collects the license texts of the modules that programs contain, and compares the licenses with a policy. It reads the
// modules that are linked on any of the platforms, and not go.mod, which also names modules of tests.
package licenses

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

const (
	// Unrecognized stands for a text that is not a known license.
	Unrecognized = "unrecognized"

	// standardLibrary is the name of the modules that come with Go.
	standardLibrary = "std"
	// covered is the percentage of a text that must be of known licenses. Copyright lines and headings are the rest.
	covered = 75
)

// legal matches the names of files with licenses, and of files that licenses require to be passed on, but not of source code.
var legal = regexp.MustCompile(`(?i)^(unlicense|licen[cs]e|copying|notice|patents)([.-](txt|md|rst|[a-z0-9-]+))?$`)

// code matches names that look like a license and are source code.
var code = regexp.MustCompile(`(?i)\.(go|py|sh|tmpl|tpl|c|h|s|js|css|html)$`)

// passedOn matches the names of files without a license.
var passedOn = regexp.MustCompile(`(?i)^(notice|patents)([.-].*)?$`)

// Module is a module that a program contains, with its legal files.
type Module struct {
	Path    string
	Version string
	Files   []File
}

// File is a file with a license, or one that a license requires to be passed on.
type File struct {
	// Name is the path below the root of the module, with slashes.
	Name string
	Text string
	// Licenses are identifiers of SPDX, or Unrecognized. A notice has none.
	Licenses []string
}

// Licenses returns the licenses of all files, sorted. A module without any is Unrecognized.
func (m Module) Licenses() []string {
	var all []string
	for _, f := range m.Files {
		all = append(all, f.Licenses...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return []string{Unrecognized}
	}
	return all
}

// Collect returns the modules of programs, sorted by path, the standard library among them. Programs are packages of the source, by the
// platforms that they are built for. The module of the source itself is left out.
func Collect(ctx context.Context, source golang.Source, programs map[golang.Platform][]string) ([]Module, error) {
	dirs := map[golang.Module]map[string]bool{}
	for platform, names := range programs {
		packages, err := source.Packages(ctx, platform, names)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if p.Module == nil || p.Module.Main {
				continue
			}
			key := golang.Module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir}
			if replaced := p.Module.Replace; replaced != nil && replaced.Version != "" {
				key.Path, key.Version = replaced.Path, replaced.Version
			}
			if dirs[key] == nil {
				dirs[key] = map[string]bool{}
			}
			addParents(dirs[key], p.Module.Dir, p.Dir)
		}
	}
	root, err := source.Root(ctx)
	if err != nil {
		return nil, err
	}
	dirs[golang.Module{Path: standardLibrary, Version: golang.Version(), Dir: root}] = map[string]bool{".": true}
	var modules []Module
	for module, below := range dirs {
		m, err := read(module, below)
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b Module) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	return modules, nil
}

// Read returns one module with the legal files in its root.
func Read(module golang.Module) (Module, error) {
	return read(module, map[string]bool{".": true})
}

// addParents adds the directory of a package and those above it, up to the root of the module: part of a module can have another license.
func addParents(dirs map[string]bool, root, dir string) {
	below, err := filepath.Rel(root, dir)
	if err != nil {
		below = "."
	}
	for below = filepath.ToSlash(below); below != "."; below = path.Dir(below) {
		dirs[below] = true
	}
	dirs["."] = true
}

func read(module golang.Module, dirs map[string]bool) (Module, error) {
	out := Module{Path: module.Path, Version: module.Version}
	for below := range dirs {
		entries, err := os.ReadDir(filepath.Join(module.Dir, filepath.FromSlash(below)))
		if err != nil {
			return Module{}, fmt.Errorf("reading the licenses of %s: %w", module.Path, err)
		}
		for _, entry := range entries {
			if entry.IsDir() || !legal.MatchString(entry.Name()) || code.MatchString(entry.Name()) {
				continue
			}
			name := path.Join(below, entry.Name())
			text, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(name)))
			if err != nil {
				return Module{}, fmt.Errorf("reading the licenses of %s: %w", module.Path, err)
			}
			out.Files = append(out.Files, File{Name: name, Text: string(text), Licenses: detect(entry.Name(), text)})
		}
	}
	slices.SortFunc(out.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// detect returns the licenses in a text.
func detect(name string, text []byte) []string {
	if passedOn.MatchString(name) {
		return nil
	}
	found := licensecheck.Scan(text)
	if found.Percent < covered {
		return []string{Unrecognized}
	}
	var all []string
	for _, match := range found.Match {
		all = append(all, match.ID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Document returns the texts of all modules. A text that several modules have is there once.
func Document(modules []Module) string {
	names := map[string][]string{}
	var texts []string
	for _, m := range modules {
		for _, f := range m.Files {
			if names[f.Text] == nil {
				texts = append(texts, f.Text)
			}
			names[f.Text] = append(names[f.Text], m.Path+" "+m.Version+", "+f.Name)
		}
	}
	var out strings.Builder
	out.WriteString("The programs of jobset-apiserver contain these modules:\n\n")
	for _, m := range modules {
		fmt.Fprintf(&out, "    %s %s: %s\n", m.Path, m.Version, strings.Join(m.Licenses(), ", "))
	}
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(names[text], "\n"), strings.TrimRight(text, " \r\n\t"))
	}
	return out.String()
}
