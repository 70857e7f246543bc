// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// sample is text in backticks, a line of an indented block, or a line of a fenced block that begins with make.
	sample = regexp.MustCompile("(?m)`[^`\n]+`|^ {4,}.+$|^make .+$")
	// makeCall is a call of make, after variables such as CLUSTER_COMPONENTS=images.
	makeCall = regexp.MustCompile("(?m)(?:^ *|`)(?:[A-Z_]+=\\S* +)*make ([a-z][a-z0-9-]*)")
	// script is a script of the repository.
	script = regexp.MustCompile(`\bhack/[a-z-]+\.sh\b`)
	target = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// TestCommandsExist looks for the make targets and scripts that pages name.
func TestCommandsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	calls, scripts := 0, 0
	for _, file := range pages(t) {
		content := read(t, file)
		for _, text := range sample.FindAllString(content, -1) {
			for _, call := range makeCall.FindAllStringSubmatch(text, -1) {
				calls++
				if !targets[call[1]] {
					t.Errorf("%s: there is no target for make %s", file, call[1])
				}
			}
		}
		for _, name := range script.FindAllString(content, -1) {
			scripts++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if calls < 60 || scripts < 20 {
		t.Errorf("found %d calls of make and %d scripts: want at least 60 and 20, or the expressions have stopped matching", calls, scripts)
	}
}

// TestContributingNamesCommands checks that the page for contributors has the commands that they need first.
func TestContributingNamesCommands(t *testing.T) {
	page := read(t, "CONTRIBUTING.md")
	for _, command := range []string{"make up", "make unit", "make lint", "make verify", "make test", "make generate"} {
		if !strings.Contains(page, command) {
			t.Errorf("CONTRIBUTING.md does not have %s", command)
		}
	}
}

// pages returns the pages in the root of the repository and in docs.
func pages(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, name)
		}
	}
	if len(found) < 40 {
		t.Errorf("found %d pages: want at least 40, or the patterns have stopped matching", len(found))
	}
	return found
}
