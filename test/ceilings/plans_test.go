// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// maxMethods is how many methods a type of a plan may have. A type with more is a builder that is handed around: divide it into functions that
	// return what they want.
	maxMethods = 20
	// decisionsInPlans is how often plans call Decide. A decision that needs another one has half a snapshot.
	decisionsInPlans = 0
	// plansInObservers is how often the files that observe call functions of plans. Observing decides nothing.
	plansInObservers = 6
	// typesOfRefusals is how many types of the controllers say that something was refused.
	typesOfRefusals = 3
)

// inPlan returns whether a package decides.
func inPlan(room string) bool {
	return strings.HasPrefix(room, "pkg/controller/") && slices.Contains(strings.Split(room, "/"), "plan")
}

func TestMethodsOfBuilders(t *testing.T) {
	methods := map[string]int{}
	for _, f := range product(t) {
		if !inPlan(f.room) {
			continue
		}
		for _, d := range f.syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				methods[f.room+"."+receiver(d.Recv.List[0].Type)]++
			}
		}
	}
	if len(methods) < 20 {
		t.Errorf("%d types have methods, want at least 20, or the search has stopped working", len(methods))
	}
	for name, n := range methods {
		if n > maxMethods {
			atMost(t, maxMethods, n, "methods has "+name, nil)
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestDecisionsInPlans(t *testing.T) {
	found := calls(t, func(f sourceFile) bool { return inPlan(f.room) }, func(fun ast.Expr) bool {
		switch fun := fun.(type) {
		case *ast.Ident:
			return fun.Name == "Decide"
		case *ast.SelectorExpr:
			return fun.Sel.Name == "Decide"
		}
		return false
	})
	atMost(t, decisionsInPlans, len(found), "calls of Decide are in plans", found)
}

func TestPlansInObservers(t *testing.T) {
	found := calls(t, func(f sourceFile) bool {
		return strings.HasPrefix(f.room, "pkg/controller/") && strings.HasPrefix(filepath.Base(f.name), "observe")
	}, func(fun ast.Expr) bool {
		s, ok := fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := s.X.(*ast.Ident)
		return ok && from.Name == "plan"
	})
	atMost(t, plansInObservers, len(found), "calls of plans are in files that observe", found)
}

// calls returns the calls of certain functions in certain files.
func calls(t *testing.T, in func(sourceFile) bool, of func(fun ast.Expr) bool) (found []string) {
	t.Helper()
	files := 0
	for _, f := range product(t) {
		if !in(f) {
			continue
		}
		files++
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && of(call.Fun) {
				found = append(found, f.at(call.Pos()))
			}
			return true
		})
	}
	if files == 0 {
		t.Error("there are no such files, or the search has stopped working")
	}
	return found
}

// TestTypesOfRefusals counts the types whose names say so. Most can be a Refusal of pkg/controller/host/plan.
func TestTypesOfRefusals(t *testing.T) {
	var found []string
	for _, f := range product(t) {
		if !strings.HasPrefix(f.room, "pkg/controller/") {
			continue
		}
		for _, d := range f.syntax.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && !s.Assign.IsValid() && strings.Contains(strings.ToLower(s.Name.Name), "refus") {
					found = append(found, fmt.Sprintf("%s: %s", f.at(s.Pos()), s.Name.Name))
				}
			}
		}
	}
	atMost(t, typesOfRefusals, len(found), "types say that something was refused", found)
}
