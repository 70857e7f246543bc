// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonsWithTwoHomes is how many reasons may be written out in more than one package. The reasons that are left are words for states, too.
const reasonsWithTwoHomes = 7

var (
	// reasonText is what reasons look like.
	reasonText = regexp.MustCompile(`^[A-Z][A-Za-z]{3,}$`)
	// reasonName is what the names of constants and lists of reasons have in them.
	reasonName = regexp.MustCompile(`(?i)reason|causes?$`)
)

// TestReasonsHaveOneHome counts reasons of conditions, events and causes that more than one package writes out. A reason stands once, in
// pkg/apis/generic/reasons if several kinds have it, or else beside the types of its kind; others name that constant.
func TestReasonsHaveOneHome(t *testing.T) {
	written, reasons := map[string]map[string]bool{}, map[string]bool{}
	for _, f := range product(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if text := textOf(n); reasonText.MatchString(text) {
					if written[text] == nil {
						written[text] = map[string]bool{}
					}
					written[text][home(f.room)] = true
				}
			default:
				for _, text := range reasonsIn(n) {
					reasons[text] = true
				}
			}
			return true
		})
	}
	if len(reasons) < 200 {
		t.Errorf("%d reasons were found, want at least 200, or the search has stopped working", len(reasons))
	}
	var several []string
	for text := range reasons {
		if homes := written[text]; len(homes) > 1 {
			several = append(several, text+": "+strings.Join(slices.Sorted(maps.Keys(homes)), ", "))
		}
	}
	slices.Sort(several)
	atMost(t, reasonsWithTwoHomes, len(several), "reasons are written out in more than one package", several)
}

// home is the package of a text. The internal types of a group and their version have the same texts by design.
func home(room string) string {
	return regexp.MustCompile(`^(pkg/apis/[a-z]+)/v[0-9][0-9a-z]*$`).ReplaceAllString(room, "$1")
}

// reasonsIn returns the texts in a node that it uses as reasons.
func reasonsIn(n ast.Node) (texts []string) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if slices.ContainsFunc(n.Names, func(name *ast.Ident) bool { return reasonName.MatchString(name.Name) }) {
			texts = textsIn(n)
		}
	case *ast.KeyValueExpr:
		if isReason(n.Key) {
			texts = append(texts, textOf(n.Value))
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			if isReason(n.X) {
				texts = append(texts, textOf(n.Y))
			}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "cause" {
			texts = textsIn(n)
		}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return !reasonText.MatchString(text) })
}

// isReason returns whether an expression is a field of the name Reason or Cause.
func isReason(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	name, ok := e.(*ast.Ident)
	return ok && (name.Name == "Reason" || name.Name == "Cause")
}

// textsIn returns all texts in a node.
func textsIn(n ast.Node) (texts []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			texts = append(texts, textOf(e))
		}
		return true
	})
	return texts
}

// textOf returns the text of an expression; empty if it is none.
func textOf(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}
