// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// memoryField is a line of /proc/PID/status.
var memoryField = regexp.MustCompile("VmHWM|VmRSS|RssAnon")

// starts are the functions that start a control plane, servers or members of etcd.
var starts = []string{"startCluster", "ownCluster", "gated.use", "framework.Start", "etcdcluster.Start", "replicas.Start"}

// testPackage is what the tests of a package declare.
type testPackage struct {
	tests     []string
	functions map[string][]*ast.FuncDecl // by name, which begins with a dot for methods; those of several types may have the same
	// values of variables and constants by name, also of constants within functions.
	values map[string][]ast.Expr
	// global has the objects of the package, in contrast to local ones of the same name.
	global map[any]bool
}

func parseTests(t *testing.T, dir string) testPackage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := testPackage{functions: map[string][]*ast.FuncDecl{}, values: map[string][]ast.Expr{}, global: map[any]bool{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				p.add(d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					p.global[spec] = true
				}
			}
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok {
				for i, name := range spec.Names[:min(len(spec.Names), len(spec.Values))] {
					p.values[name.Name] = append(p.values[name.Name], spec.Values[i])
				}
			}
			return true
		})
	}
	return p
}

func (p *testPackage) add(function *ast.FuncDecl) {
	if function.Body == nil {
		return
	}
	name := function.Name.Name
	if function.Recv != nil {
		name = "." + name
	}
	p.functions[name] = append(p.functions[name], function)
	p.global[function] = true
	if strings.HasPrefix(name, "Test") && name != "TestMain" {
		p.tests = append(p.tests, name)
	}
}

// onRequest says that the first statement of the test is tier.OnRequest.
func (p testPackage) onRequest(test string) bool {
	for _, function := range p.functions[test] {
		if len(function.Body.List) == 0 {
			return false
		}
		statement, ok := function.Body.List[0].(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := statement.X.(*ast.CallExpr)
		if !ok || calledName(call) != "tier.OnRequest" {
			return false
		}
	}
	return len(p.functions[test]) > 0
}

// slow returns what the function does that a test of the gate must not do, or what of the package it refers to. What runs in a bubble has
// a clock of its own. A function that is on request in itself, such as a case of a table, is left out.
func (p testPackage) slow(name string, seen map[string]bool) []string {
	if seen[name] || p.onRequest(name) {
		return nil
	}
	seen[name] = true
	var found []string
	for _, function := range p.functions[name] {
		found = append(found, p.slowIn(function.Body, seen)...)
	}
	return found
}

// slowIn is slow for a part of a function, or the value of a variable. A function that starts a bubble mostly calls others within it.
func (p testPackage) slowIn(root ast.Node, seen map[string]bool) (found []string) {
	follow := !contains(root, isBubble)
	took, cases := map[string]bool{}, map[ast.Stmt]bool{}
	ast.Inspect(root, func(node ast.Node) bool {
		if what := p.slowNode(node, took); what != "" {
			if statement, ok := node.(ast.Stmt); !ok || !cases[statement] {
				found = append(found, what)
			}
		}
		switch n := node.(type) {
		case *ast.CommClause:
			cases[n.Comm] = true // one of several things that are waited for
		case *ast.Ident:
			if follow && p.isGlobal(n) {
				found = append(found, p.slowValue(n.Name, seen)...)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.Ident); !follow || ok && !p.isGlobal(called) {
				return !isBubble(n)
			}
			name := declaredName(n)
			found = append(found, p.slow(name, seen)...)
			return !p.startsBubble(name)
		}
		return true
	})
	return found
}

// isGlobal says that a name does not belong to the function in which it is, as far as is known.
func (p testPackage) isGlobal(name *ast.Ident) bool {
	return name.Obj == nil || p.global[name.Obj.Decl]
}

// slowValue is slow for a variable of the package, or a function that is no method.
func (p testPackage) slowValue(name string, seen map[string]bool) (found []string) {
	if len(p.functions[name]) > 0 {
		return p.slow(name, seen)
	}
	if key := "value " + name; !seen[key] {
		seen[key] = true
		for _, value := range p.values[name] {
			found = append(found, p.slowIn(value, seen)...)
		}
	}
	return found
}

// startsBubble says that a function runs what it is given in a bubble.
func (p testPackage) startsBubble(name string) bool {
	return slices.ContainsFunc(p.functions[name], func(function *ast.FuncDecl) bool { return contains(function.Body, isBubble) })
}

func isBubble(node ast.Node) bool {
	call, ok := node.(*ast.CallExpr)
	return ok && calledName(call) == "synctest.Test"
}

// slowNode says what a node of a syntax tree does that a test of the gate must not do; "" for nothing. It notes which variables are wall times.
func (p testPackage) slowNode(node ast.Node, took map[string]bool) string {
	switch n := node.(type) {
	case *ast.CallExpr:
		return p.slowCall(n)
	case *ast.CompositeLit:
		if n.Type != nil && dotted(n.Type) == "localcluster.Cluster" {
			return "starts a cluster"
		}
	case *ast.ExprStmt:
		if receive, ok := n.X.(*ast.UnaryExpr); ok && receive.Op == token.ARROW {
			if call, ok := receive.X.(*ast.CallExpr); ok && calledName(call) == "time.After" && len(call.Args) == 1 {
				return sleeps(p.duration(call.Args[0]))
			}
		}
	case *ast.ForStmt:
		if n.Init != nil {
			return sleeps(p.duration(addedToNow(n.Init)))
		}
	case *ast.AssignStmt:
		if len(n.Rhs) == 1 && contains(n.Rhs[0], isSince) {
			took[dotted(n.Lhs[0])] = true
		}
	case *ast.BinaryExpr:
		wall := func(node ast.Node) bool {
			name, ok := node.(*ast.Ident)
			return ok && took[name.Name] || isSince(node)
		}
		if slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, n.Op) && contains(n, wall) {
			return "compares a wall time"
		}
	case *ast.BasicLit:
		if memoryField.MatchString(n.Value) {
			return "reads resident memory"
		}
	}
	return ""
}

func (p testPackage) slowCall(call *ast.CallExpr) string {
	name := calledName(call)
	switch {
	case slices.Contains(starts, name):
		return "starts a cluster"
	case strings.HasSuffix(name, ".Script") && len(call.Args) > 0:
		return map[string]string{"up": "starts a cluster", "stop": "stops a program of the cluster", "down": "stops a program of the cluster"}[literal(call.Args[0])]
	case strings.HasSuffix(name, ".AnonymousPeak"):
		return "reads resident memory"
	case name == "time.Sleep" && len(call.Args) == 1:
		return sleeps(p.duration(call.Args[0]))
	}
	for _, function := range p.functions[declaredName(call)] {
		for i, parameter := range parameters(function) {
			if i < len(call.Args) && waitsFor(function.Body, parameter) {
				return sleeps(p.duration(call.Args[i]))
			}
		}
	}
	return ""
}

func contains(root ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(root, func(node ast.Node) bool {
		found = found || node != nil && is(node)
		return !found
	})
	return found
}

// calledName is the name of what is called, with what it is selected from: "time.Sleep", "k.cluster.Script"; "" for other expressions.
func calledName(call *ast.CallExpr) string { return dotted(call.Fun) }

// declaredName is the name by which the package may declare what is called.
func declaredName(call *ast.CallExpr) string {
	name := calledName(call)
	return name[max(strings.LastIndex(name, "."), 0):]
}

func dotted(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

func literal(expression ast.Expr) string {
	if l, ok := expression.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return ""
}
