// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// once runs tests, of which none is repeated.
func once(args []string, stdout, stderr io.Writer) (int, error) {
	parsed, err := parse(args)
	if err != nil {
		return 0, err
	}
	results, err := goTest(parsed, os.Environ(), stdout, stderr)
	if err != nil {
		return 0, err
	}
	if parsed.has("run", "skip") { // other packages may have what is selected
		results.packages = slices.DeleteFunc(results.packages, func(p *tested) bool { return p.action == "pass" && !p.begun && p.end == "PASS" })
	}
	r := results.record()
	failed := slices.Concat(r.Failed, r.Stopped)
	for _, repetition := range r.Repeat {
		failed = append(failed, repetition.failures()...)
	}
	if r.Passed == 0 && len(failed) == 0 {
		failed = []string{"no test passed"}
	}
	for _, line := range failed {
		fmt.Fprintln(stdout, "failed:", short(line))
	}
	if len(failed) > 0 {
		return 1, nil
	}
	return 0, nil
}
