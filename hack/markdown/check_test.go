// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCheck has a mistake of each kind, and what looks like one. A wanted problem is a line and the begin of its text.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   []string
	}{
		"a page without mistakes": {source: "# A\n\nText with `|`, `**`, `<b>`, a*b, [link](a.md) and <a id=\"x\"></a>.\n\n- item\n  more\n- item\n\n1. one\n\n       code\n\n2. two\n"},
		"a table":                 {source: "| a | b |\n|---|---|\n| `x \\| y` | z |\n|  | z |\n| z |  |\n"},
		"a row with more cells":   {"| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 | 3 |\n", []string{"4: the row has 3 cells"}},
		"a row with fewer cells":  {"| a | b |\n|---|---|\n| 1 |\n", []string{"3: the row has 1 cells"}},
		"a bar in code":           {"| a | b |\n|---|---|\n| `x|y` | z |\n", []string{"3: the row has 3 cells"}},
		"a row in an item":        {"- item\n\n  | a | b |\n  |---|---|\n  | 1 |\n", []string{"5: the row has 1 cells"}},
		"too few dashes":          {"text\n\n| a | b |\n|---|\n| 1 | 2 |\n", []string{"3: the row is shown", "4: the row is shown", "5: the row is shown"}},
		"no dashes":               {"| a | b |\n| 1 | 2 |\n", []string{"1: the row is shown", "2: the row is shown"}},
		"a list in a paragraph":   {"text\n2. two\n3. three\n", []string{"2: the item is shown", "3: the item is shown"}},
		"a list too far in":       {"text\n    - one\n", []string{"2: the item"}},
		"a list after text":       {source: "text:\n- one\n- two\n"},
		"a number in a line":      {source: "It has\n3 parts, and costs 2.\n"},
		"a divided list":          {"1. one\n\n```\ncode\n```\n\n2. two\n", []string{"7: a list begins with the number 2"}},
		"a heading by accident":   {"text\n---\n\nmore\n", []string{"1: the line below"}},
		"a rule":                  {source: "text\n\n---\n\nmore\n"},
		"a link with a space":     {"See [this](a b.md).\n", []string{`1: "]("`}},
		"a link without a target": {"See [this][that].\n", []string{`1: "]["`}},
		"emphasis without an end": {"first\n**bold and more\n", []string{`2: "**"`}},
		"code without an end":     {"a ``b` c\n", []string{"1: \"``\""}},
		"in a cell":               {"| a | b |\n|---|---|\n| **x | z |\n", []string{`3: "**"`}},
		"a placeholder":           {"The name is <set>-<group>.\n", []string{"1: <set> is not shown", "1: <group> is not shown"}},
		"a block of HTML":         {"text\n\n<div>\nx\n</div>\n", []string{"3: <div>"}},
		"a comment":               {source: "<!-- -->\n"},
		"code that does not end":  {"text\n\n```sh\nmake\n", []string{"4: the block of code"}},
		"code in an item":         {source: "- item\n\n  ```\n  code\n  ```\n\n- item\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Check([]byte(tc.source)) {
				got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Text))
			}
			if !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}
