// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notes extracts the notes of a release from the changelog.
package notes

import (
	"fmt"
	"regexp"
	"strings"
)

// Unreleased is the heading of changes that are in no version yet.
const Unreleased = "Unreleased"

// relative matches links to files of the repository.
var relative = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// Extract returns what stands under the heading of a version, such as v1.2.3, which may have a date behind it. Links to files are completed
// with an address. Without such a heading, what is unreleased is returned, and the heading that was used says so.
func Extract(changelog, version, address string) (text, heading string, err error) {
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+changelog, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		name, _, _ := strings.Cut(strings.TrimSpace(title), " ")
		sections[strings.Trim(name, "[]")] = strings.TrimSpace(body)
	}
	heading = version
	if _, found := sections[heading]; !found {
		heading = Unreleased
	}
	if sections[heading] == "" {
		return "", "", fmt.Errorf("the changelog must have changes under the heading \"## %s\" or \"## %s\"", version, Unreleased)
	}
	body := relative.ReplaceAllString(sections[heading], "]("+strings.TrimSuffix(address, "/")+"/$1$2)")
	return "# " + version + "\n\n" + body + "\n", heading, nil
}
