// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/vuln/scan"
)

// standardLibrary is the name under which the database has the packages of Go itself.
const standardLibrary = "stdlib"

// message is one value in the output of the scanner; one of its fields is set.
type message struct {
	OSV     *vulnerability `json:"osv"`
	Finding *finding       `json:"finding"`
}

// vulnerability is an entry of the database.
type vulnerability struct {
	ID       string     `json:"id"`
	Summary  string     `json:"summary"`
	Affected []affected `json:"affected"`
}

// affected has the versions of a module that are vulnerable.
type affected struct {
	Package struct {
		Name string `json:"name"`
	} `json:"package"`
	Ranges []struct {
		Events []event `json:"events"`
	} `json:"ranges"`
}

// event is a version, without the leading v, at which a vulnerability begins or ends. Events of a range are in ascending order.
type event struct {
	Introduced string `json:"introduced"`
	Fixed      string `json:"fixed"`
}

// finding says that a program contains a vulnerable module, package or function.
type finding struct {
	OSV          string  `json:"osv"`
	FixedVersion string  `json:"fixed_version"`
	Trace        []frame `json:"trace"`
}

// frame is the vulnerable module; Package and Function are empty if the program has none of the vulnerable ones.
type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Receiver string `json:"receiver"`
	Function string `json:"function"`
}

// reach is a vulnerability of which programs contain vulnerable functions.
type reach struct {
	module, version, fixed string
	programs, functions    []string
}

// results has what the scans of all programs found.
type results struct {
	known   map[string]vulnerability // vulnerabilities of all modules in the programs, also those of other versions
	reached map[string]*reach
	unused  map[string]finding // a module is vulnerable, and none of the vulnerable functions is in a program
	goes    []string           // versions of Go that built the programs, such as 1.26.8
}

func newResults() *results {
	return &results{known: map[string]vulnerability{}, reached: map[string]*reach{}, unused: map[string]finding{}}
}

// scan adds what a program contains. The program must have its symbol table.
func (r *results) scan(ctx context.Context, database, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading %s: %w", program, err)
	}
	if stripped(program) {
		return fmt.Errorf("%s was linked without its symbol table: build it without -ldflags=-s", program)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	if !slices.Contains(r.goes, version) {
		r.goes = append(r.goes, version)
	}
	var output, messages bytes.Buffer
	command := scan.Command(ctx, "-mode", "binary", "-format", "json", "-db", "file://"+filepath.ToSlash(database), program)
	command.Stdout, command.Stderr = &output, &messages
	if err := errors.Join(command.Start(), command.Wait()); err != nil {
		return fmt.Errorf("scanning %s: %w: %s", program, err, messages.String())
	}
	return r.read(&output, filepath.Base(program))
}

// stripped returns whether an ELF file has no symbol table. The scanner would take all functions of all its modules for reached.
func stripped(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer file.Close()
	_, err = file.Symbols()
	return errors.Is(err, elf.ErrNoSymbols)
}

// read adds the output of the scanner about a program.
func (r *results) read(output io.Reader, program string) error {
	decoder := json.NewDecoder(output)
	for {
		var m message
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("reading the result of the scan of %s: %w", program, err)
		}
		if m.OSV != nil {
			r.known[m.OSV.ID] = *m.OSV
		}
		if m.Finding != nil {
			r.add(*m.Finding, program)
		}
	}
	for id := range r.reached {
		delete(r.unused, id)
	}
	return nil
}

func (r *results) add(f finding, program string) {
	if len(f.Trace) == 0 || f.Trace[0].Function == "" {
		r.unused[f.OSV] = f
		return
	}
	at := f.Trace[0]
	known, found := r.reached[f.OSV]
	if !found {
		known = &reach{module: at.Module, version: at.Version, fixed: f.FixedVersion}
		r.reached[f.OSV] = known
	}
	known.programs = include(known.programs, program)
	name := at.Function
	if at.Receiver != "" {
		name = at.Receiver + "." + name
	}
	known.functions = include(known.functions, at.Package+"."+name)
}

// include returns the sorted list with the value in it once.
func include(list []string, value string) []string {
	at, found := slices.BinarySearch(list, value)
	if found {
		return list
	}
	return slices.Insert(list, at, value)
}

// affects returns whether a version of a module has the vulnerability. Versions have no leading v.
func (v vulnerability) affects(module, version string) bool {
	for _, a := range v.Affected {
		if a.Package.Name != module {
			continue
		}
		for _, r := range a.Ranges {
			if within(r.Events, version) {
				return true
			}
		}
	}
	return false
}

func within(events []event, version string) bool {
	vulnerable := false
	for _, e := range events {
		switch {
		case e.Introduced == "0", e.Introduced != "" && semver.Compare("v"+version, "v"+e.Introduced) >= 0:
			vulnerable = true
		case e.Fixed != "" && semver.Compare("v"+version, "v"+e.Fixed) >= 0:
			vulnerable = false
		}
	}
	return vulnerable
}
