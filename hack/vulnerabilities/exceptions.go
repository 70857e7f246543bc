// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var idPattern = regexp.MustCompile(`^GO-[0-9]{4}-[0-9]{4,}$`)

// parseExceptions returns the reasons by the IDs of vulnerabilities. Empty lines and those that begin with # are ignored.
func parseExceptions(name, text string) (map[string]string, error) {
	reasons := map[string]string{}
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		switch {
		case !idPattern.MatchString(id):
			errs = append(errs, fmt.Errorf("%s:%d: must begin with an ID such as GO-2026-1234, was %q", name, i+1, id))
		case strings.TrimSpace(reason) == "":
			errs = append(errs, fmt.Errorf("%s:%d: %s must have a reason after the ID", name, i+1, id))
		case reasons[id] != "":
			errs = append(errs, fmt.Errorf("%s:%d: %s is in the file already", name, i+1, id))
		default:
			reasons[id] = strings.TrimSpace(reason)
		}
	}
	return reasons, errors.Join(errs...)
}

// compare writes what the programs reach, and returns an error that lists what is not excepted, and exceptions that nothing needs.
func compare(out io.Writer, r *results, exceptions map[string]string, oldestGo string) error {
	var problems []string
	accepted := 0
	for _, id := range slices.Sorted(maps.Keys(r.reached)) {
		if exceptions[id] != "" {
			accepted++
			continue
		}
		problems = append(problems, r.describe(id))
	}
	for _, id := range slices.Sorted(maps.Keys(exceptions)) {
		if r.reached[id] == nil && !r.otherGo(id, oldestGo) {
			problems = append(problems, id+": no program reaches it; remove the exception")
		}
	}
	fmt.Fprintf(out, "programs built with Go %s reach %d known vulnerabilities, of which %d are excepted\n",
		strings.Join(r.goes, " and "), len(r.reached), accepted)
	for _, id := range slices.Sorted(maps.Keys(r.unused)) {
		f := r.unused[id]
		fmt.Fprintf(out, "not reached: %s in %s, %s\n", id, f.at(), fix(f.Trace[0].Module, f.FixedVersion))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the programs and the exceptions differ:\n%s\n"+
		"update the modules or Go, or write a line with the ID and a reason to hack/vulnerabilities/exceptions.txt", strings.Join(problems, "\n"))
}

// otherGo returns whether the vulnerability is one of the standard library that the programs do not have only because of the Go that
// built them: an older one, which go.mod permits, builds them with it.
func (r *results) otherGo(id, oldestGo string) bool {
	v := r.known[id]
	for _, version := range r.goes {
		if v.affects(standardLibrary, version) {
			return false
		}
	}
	return v.affects(standardLibrary, oldestGo)
}

// describe says what a vulnerability is, which programs reach it through which functions, and what fixes it.
func (r *results) describe(id string) string {
	reached := r.reached[id]
	functions := reached.functions
	if more := len(functions) - 3; more > 0 {
		functions = append(slices.Clone(functions[:3]), fmt.Sprintf("%d more", more))
	}
	at := finding{Trace: []frame{{Module: reached.module, Version: reached.version}}}.at()
	return fmt.Sprintf("%s: %s\n  in %s, %s\n  programs: %s\n  functions: %s\n  https://pkg.go.dev/vuln/%s", id, r.known[id].Summary,
		at, fix(reached.module, reached.fixed), strings.Join(reached.programs, ", "), strings.Join(functions, ", "), id)
}

// at names the vulnerable module and its version.
func (f finding) at() string {
	module, version := f.Trace[0].Module, f.Trace[0].Version
	if module == standardLibrary {
		return "the standard library of Go " + strings.TrimPrefix(version, "v")
	}
	return module + " " + version
}

// fix says which version has no such vulnerability.
func fix(module, version string) string {
	switch {
	case version == "":
		return "not fixed in any version"
	case module == standardLibrary:
		return "fixed in Go " + strings.TrimPrefix(version, "v")
	}
	return fmt.Sprintf("fixed in %s, go get %s@%s", version, module, version)
}
