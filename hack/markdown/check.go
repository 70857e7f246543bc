// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Problem is a mistake in a line of a file.
type Problem struct {
	Line int
	Text string
}

var (
	// item is the beginning of an item of a list, and row a row of a table.
	item = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,9}[.)])\s+\S`)
	row  = regexp.MustCompile(`^\s*\|.*\|\s*$`)
	// fence begins or ends a block of code.
	fence = regexp.MustCompile("^[ >]*(?:[-*+] +|\\d+[.)] +)*(`{3,}|~{3,})")
	// permitted are tags that are meant as such: anchors, line breaks, and comments.
	permitted = regexp.MustCompile(`(?i)^(?:</?a\b[^>]*>|<br\s*/?>|<!--)`)
	// unparsed is text that is no text: a link without its target, and marks of emphasis and of code.
	unparsed = regexp.MustCompile("\\]\\(|\\]\\[|\\*\\*|``")
)

// checker collects the problems of one file.
type checker struct {
	source   []byte
	problems []Problem
}

// Check returns the problems of a file by line. The file is read as GitHub reads it, with tables.
func Check(source []byte) []Problem {
	c := &checker{source: source}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			c.check(node)
		}
		return ast.WalkContinue, nil
	})
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return a.Line - b.Line })
	return slices.Compact(c.problems)
}

func (c *checker) check(node ast.Node) {
	switch n := node.(type) {
	case *east.Table:
		c.table(n)
	case *ast.Paragraph, *ast.TextBlock:
		c.paragraph(n)
	case *east.TableCell:
		c.unparsed(n)
	case *ast.Heading:
		c.heading(n)
	case *ast.List:
		c.list(n)
	case *ast.FencedCodeBlock:
		c.fenced(n)
	case *ast.HTMLBlock:
		c.html(n.Lines().Value(c.source), n.Lines().At(0).Start)
	case *ast.RawHTML:
		c.html(n.Segments.Value(c.source), n.Segments.At(0).Start)
	}
}

// add reports a problem at an offset of the file.
func (c *checker) add(offset int, format string, args ...any) {
	c.problems = append(c.problems, Problem{bytes.Count(c.source[:offset], []byte("\n")) + 1, fmt.Sprintf(format, args...)})
}

// line is the line of the file at an offset, with its indentation, and the offset of its begin.
func (c *checker) line(offset int) (string, int) {
	begin := bytes.LastIndexByte(c.source[:offset], '\n') + 1
	end := len(c.source)
	if length := bytes.IndexByte(c.source[begin:], '\n'); length >= 0 {
		end = begin + length
	}
	return string(c.source[begin:end]), begin
}

// table counts the cells of each row, which the parser fills up, or cuts off, to the length of the first row.
func (c *checker) table(table *east.Table) {
	want := 0
	for node := table.FirstChild(); node != nil; node = node.NextSibling() {
		first := node.FirstChild()
		if first == nil || first.Lines().Len() == 0 {
			continue
		}
		text, begin := c.line(first.Lines().At(0).Start)
		got := cells(text)
		if want == 0 {
			want = got
		}
		if got != want {
			c.add(begin, "the row has %d cells, but the first row of the table has %d; write \\| for a bar in a cell", got, want)
		}
	}
}

// cells counts the cells of a row. A bar divides cells in code, too, unless a backslash is before it.
func cells(row string) int {
	row = strings.ReplaceAll(strings.TrimSpace(row), `\|`, "")
	row = strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|")
	return strings.Count(row, "|") + 1
}

// paragraph looks for lines that are meant as something else than text.
func (c *checker) paragraph(node ast.Node) {
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		line := string(segment.Value(c.source))
		switch {
		case row.MatchString(line):
			c.add(segment.Start, "the row is shown as text: a table begins after an empty line, and its second row is |---|---|")
		case i > 0 && item.MatchString(line):
			c.add(segment.Start, "the item is shown as text: put an empty line before the list, and indent its items by less than four spaces")
		}
	}
	c.unparsed(node)
}

// unparsed looks for marks in the text of a block. They stand in one piece of text or at the end of one, as the parser divides it.
func (c *checker) unparsed(block ast.Node) {
	_ = ast.Walk(block, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || node.Kind() == ast.KindCodeSpan {
			return ast.WalkSkipChildren, nil
		}
		part, ok := node.(*ast.Text)
		if !ok {
			return ast.WalkContinue, nil
		}
		begin, end := part.Segment.Start, part.Segment.Stop
		for next, ok := part.NextSibling().(*ast.Text); ok; next, ok = next.NextSibling().(*ast.Text) {
			if next.Segment.Start != end {
				break
			}
			end = next.Segment.Stop
		}
		if at := unparsed.FindIndex(c.source[begin:end]); at != nil {
			c.add(begin+at[0], "%q is shown as text: the link, the emphasis or the code has no end, or its target is missing",
				c.source[begin+at[0]:begin+at[1]])
		}
		return ast.WalkContinue, nil
	})
}

// heading finds paragraphs that a line of dashes makes headings.
func (c *checker) heading(heading *ast.Heading) {
	if heading.Lines().Len() == 0 {
		return
	}
	if text, begin := c.line(heading.Lines().At(0).Start); !strings.HasPrefix(strings.TrimLeft(text, " "), "#") {
		c.add(begin, "the line below makes this text a heading: begin headings with #, and put an empty line before a line of dashes")
	}
	c.unparsed(heading)
}

// list finds numbered lists that something has divided.
func (c *checker) list(list *ast.List) {
	if !list.IsOrdered() || list.Start == 1 {
		return
	}
	for node := list.FirstChild(); node != nil; node = node.FirstChild() {
		if node.Type() == ast.TypeBlock && node.Lines() != nil && node.Lines().Len() > 0 {
			c.add(node.Lines().At(0).Start,
				"a list begins with the number %d: what stands before it ends the list; indent that as the text of an item", list.Start)
			return
		}
	}
}

// fenced finds blocks of code that go on to the end of the file or of their item.
func (c *checker) fenced(block *ast.FencedCodeBlock) {
	if block.Lines().Len() == 0 {
		return
	}
	last := block.Lines().At(block.Lines().Len() - 1)
	if last.Stop < len(c.source) {
		if text, _ := c.line(last.Stop); fence.MatchString(text) {
			return
		}
	}
	c.add(block.Lines().At(0).Start, "the block of code has no end")
}

// html finds placeholders, which browsers take for tags and do not show.
func (c *checker) html(tag []byte, offset int) {
	if !permitted.Match(bytes.TrimSpace(tag)) {
		c.add(offset, "%s is not shown, because it looks like a tag: put it into backticks", bytes.TrimSpace(tag))
	}
}
