// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// record is a line of the state: what a run leaves for `again`.
type record struct {
	// Passed and Skipped count tests.
	Passed  int `json:"passed"`
	Skipped int `json:"skipped"`
	// Failed are the reasons why the run failed at once. Nothing is repeated then.
	Failed []string `json:"failed,omitempty"`
	// Stopped are packages that failed after their tests had passed, and why.
	Stopped []string `json:"stopped,omitempty"`
	// Repeat are the packages with tests that are repeated.
	Repeat []repetition `json:"repeat,omitempty"`
	// Arguments and Environment are what the run had.
	Arguments   []string `json:"arguments"`
	Environment []string `json:"environment"`
}

// repetition is a package with tests that are repeated, or that is repeated whole, for the reason.
type repetition struct {
	Package string    `json:"package"`
	Tests   []failure `json:"tests,omitempty"`
	Whole   string    `json:"whole,omitempty"`
}

// failures are the failed tests as a summary shows them. A package that is repeated whole counts for one.
func (r repetition) failures() []string {
	if len(r.Tests) == 0 {
		return []string{r.Package + ": " + r.Whole}
	}
	var lines []string
	for _, f := range r.Tests {
		lines = append(lines, r.Package+"."+f.Test+": "+f.Message)
	}
	return lines
}

// record returns what the run leaves.
func (r *results) record() record {
	var result record
	for _, p := range r.packages {
		v := p.verdict()
		result.Passed, result.Skipped = result.Passed+len(p.passes), result.Skipped+p.skipped
		result.Failed = append(result.Failed, v.red...)
		if v.stop != "" {
			result.Stopped = append(result.Stopped, p.name+": "+v.stop)
		}
		if v.whole != "" || len(v.repeat) > 0 {
			result.Repeat = append(result.Repeat, repetition{Package: p.name, Tests: v.repeat, Whole: v.whole})
		}
	}
	if r.interrupted {
		result.Failed = append(result.Failed, "interrupted")
	} else if r.problem != "" {
		result.Failed = append(result.Failed, r.problem)
	}
	return result
}

// passed says that the test passed.
func (r *results) passed(test string) bool {
	return slices.ContainsFunc(r.packages, func(p *tested) bool { return slices.Contains(p.passes, test) })
}

// load reads the state. A file that does not exist is empty.
func load(file string) ([]record, error) {
	in, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var records []record
	for decoder := json.NewDecoder(in); ; {
		var r record
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return records, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		records = append(records, r)
	}
}

// save appends the record to the state.
func (r record) save(file string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return appendTo(file, string(line)+"\n")
}

func appendTo(file, content string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = out.WriteString(content)
	return errors.Join(err, out.Close())
}

// isTestVariable says that a variable of the environment belongs to the tests, so that they are repeated with the same value.
func isTestVariable(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "JOBSET_") || strings.HasPrefix(name, "CLUSTER_") || name == "CGO_ENABLED" || name == "GOFLAGS"
}

// environment is the environment of the repetition: the present one, with the variables of tests as they were.
func (r record) environment() []string {
	return append(slices.DeleteFunc(os.Environ(), isTestVariable), r.Environment...)
}
