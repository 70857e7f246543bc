// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	heading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)
	fence   = regexp.MustCompile("^ {0,3}(```|~~~)")
	// linkText is a link or a picture, of which the anchor has the text only.
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	explicit = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
	// dropped are the characters that headings lose in their anchors.
	dropped = regexp.MustCompile(`[^\p{L}\p{M}\p{N}_ -]`)
)

// anchors returns the anchors of a document in their order, as Git hosts and the pages of hack/site make them from headings. A heading that
// occurs again has a number.
func anchors(content string) []string {
	var found []string
	fenced := ""
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		if mark := fence.FindStringSubmatch(line); mark != nil && (fenced == "" || fenced == mark[1]) {
			if fenced == "" {
				fenced = mark[1]
			} else {
				fenced = ""
			}
		}
		if fenced != "" {
			continue
		}
		if match := heading.FindStringSubmatch(line); match != nil {
			text := dropped.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(match[1], "$1")), "")
			anchor := strings.ReplaceAll(strings.TrimSpace(text), " ", "-")
			unique := anchor
			for i := 1; slices.Contains(found, unique); i++ {
				unique = fmt.Sprintf("%s-%d", anchor, i)
			}
			found = append(found, unique)
		}
		for _, match := range explicit.FindAllStringSubmatch(line, -1) {
			found = append(found, match[1])
		}
	}
	return found
}

// TestAnchorsOfHeadings compares the rule with a list, with which a test in hack/site compares Hugo.
func TestAnchorsOfHeadings(t *testing.T) {
	want := strings.Fields(read(t, "test/docs/testdata/anchors.txt"))
	if got := anchors(read(t, "test/docs/testdata/anchors.md")); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
