// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command docsite finishes the pages of the documentation that Hugo has built: it checks all links, writes the search index, puts the pages
// into the directory of their version, and writes the list of versions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("docsite", flag.ContinueOnError)
	built := flags.String("pages", "", "the directory into which Hugo has built the pages; it is moved")
	source := flags.String("source", "", "the checkout of the repository that the pages were built from")
	output := flags.String("output", "", "the directory with a directory for each version")
	version := flags.String("version", "", "the version of the pages, such as v0.1.0")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *built == "" || *source == "" || *output == "" {
		return errors.New("-pages, -source and -output must be set")
	}
	if !semver.IsValid(*version) || semver.Canonical(*version) != *version {
		return fmt.Errorf("VERSION must be a version such as v0.1.0 or v0.2.0-rc.1, not %q", *version)
	}
	pages, err := finish(*built, *source)
	if err != nil {
		return err
	}
	target := filepath.Join(*output, *version)
	if err := replace(*built, target); err != nil {
		return err
	}
	if err := writeVersions(*output); err != nil {
		return err
	}
	fmt.Printf("%d pages of %s: %s\n", pages, *version, filepath.Join(target, "index.html"))
	return nil
}

// finish checks the pages and adds the search index to them. It returns how many there are.
func finish(built, source string) (int, error) {
	pages, err := readPages(built)
	if err != nil {
		return 0, err
	}
	problems := append(checkLinks(pages, built, source), checkFiles(built)...)
	if len(problems) > 0 {
		for _, problem := range problems {
			fmt.Fprintln(os.Stderr, problem)
		}
		return 0, fmt.Errorf("the documentation has mistakes: %d; nothing was written", len(problems))
	}
	return len(pages), writeSearchIndex(pages, filepath.Join(built, "search-index.js"))
}

// replace moves a directory to a path at which an earlier one may be.
func replace(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}
