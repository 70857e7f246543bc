// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"time"
)

func sleeps(d time.Duration) string {
	if d < longestSleep {
		return ""
	}
	return "sleeps for " + d.String()
}

// parameters are the names of the parameters of a function.
func parameters(function *ast.FuncDecl) (names []string) {
	for _, field := range function.Type.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// waitsFor says that a function sleeps for the time of a parameter, or looks for that long.
func waitsFor(body ast.Node, parameter string) bool {
	return contains(body, func(node ast.Node) bool {
		var d ast.Expr
		switch n := node.(type) {
		case *ast.CallExpr:
			if calledName(n) == "time.Sleep" && len(n.Args) == 1 {
				d = n.Args[0]
			}
		case *ast.ForStmt:
			if n.Init != nil {
				d = addedToNow(n.Init)
			}
		}
		return d != nil && dotted(d) == parameter
	})
}

// addedToNow is d of time.Now().Add(d) in a statement; nil if there is none.
func addedToNow(statement ast.Node) (d ast.Expr) {
	contains(statement, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return false
		}
		if add, ok := call.Fun.(*ast.SelectorExpr); ok && add.Sel.Name == "Add" && isCallOf(add.X, "time.Now") {
			d = call.Args[0]
		}
		return d != nil
	})
	return d
}

// isSince says that an expression is the time since another one.
func isSince(node ast.Node) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return false
	}
	sub, ok := call.Fun.(*ast.SelectorExpr)
	return calledName(call) == "time.Since" || ok && sub.Sel.Name == "Sub" && isCallOf(sub.X, "time.Now")
}

func isCallOf(expression ast.Expr, name string) bool {
	call, ok := expression.(*ast.CallExpr)
	return ok && calledName(call) == name
}

// duration returns the value of expressions such as 5*time.Second, or the longest one of a name or function; 0 for others.
func (p testPackage) duration(expression ast.Expr) time.Duration {
	switch e := expression.(type) {
	case *ast.BasicLit:
		n, _ := strconv.Atoi(strings.ReplaceAll(e.Value, "_", ""))
		return time.Duration(n)
	case *ast.SelectorExpr:
		return map[string]time.Duration{"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour}[dotted(e)]
	case *ast.ParenExpr:
		return p.duration(e.X)
	case *ast.BinaryExpr:
		switch e.Op {
		case token.MUL:
			return p.duration(e.X) * p.duration(e.Y)
		case token.ADD:
			return p.duration(e.X) + p.duration(e.Y)
		}
	case *ast.Ident:
		return p.longest(p.values[e.Name])
	case *ast.CallExpr:
		if function := p.functions[calledName(e)]; len(function) == 1 {
			return p.longest(results(function[0].Body))
		}
	}
	return 0
}

func (p testPackage) longest(expressions []ast.Expr) (d time.Duration) {
	for _, e := range expressions {
		d = max(d, p.duration(e))
	}
	return d
}

// results are what a function returns first.
func results(body ast.Node) (all []ast.Expr) {
	ast.Inspect(body, func(node ast.Node) bool {
		if r, ok := node.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			all = append(all, r.Results[0])
		}
		return true
	})
	return all
}
