// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeVerbs are the methods of clients that change something, and guardMethods those of guards that may yield.
var (
	writeVerbs   = []string{"Create", "Update", "UpdateStatus", "Patch", "Delete", "DeleteCollection", "Apply", "ApplyStatus", "ApplyScale", "UpdateScale", "Evict"}
	guardMethods = []string{"Creating", "Changing", "ChangingTo", "Replacing", "Removing", "MayAdopt", "Storing", "guarded"}
)

// guardedIn is the function that asks a guard before a write is made. It is in the same package.
type guardedIn string

// unguarded is why a write needs no guard.
type unguarded string

const (
	writer  unguarded = "a Writer, which has a guard"
	plans   unguarded = "it carries out a plan by other functions of this list"
	wrapper unguarded = "the client of a Writer or of another function of this list"
)

// writesOfControllers are all functions of controllers that ask a client for a write, with what keeps another party that undoes the write
// from provoking it again and again.
var writesOfControllers = map[string]any{
	"host/children.createAs":     guardedIn("createAs"),
	"host/children.Delete":       guardedIn("Removing"),
	"host/children.patch":        unguarded("its callers, Patch, Relabel and Adopt, ask the guard"),
	"host/children.UpdateStatus": guardedIn("StoreStatus"),
	"host/children.DeleteOwner":  unguarded("it ends the object; one that is created again is another one, with a time to live of its own"),

	"host/loop.apply": plans,

	"disaggregatedset.create":      writer,
	"disaggregatedset.patch":       writer,
	"disaggregatedset.remove":      unguarded("it is called with Writer.Removing"),
	"disaggregatedset.storeStatus": guardedIn("storeStatus"),

	"jobset.createClaim":   writer,
	"jobset.createGroup":   guardedIn("createGroup"),
	"jobset.createService": writer,
	"jobset.deleteGroup":   guardedIn("deleteGroup"),
	"jobset.deleteJobs":    writer,
	"jobset.sendPatch":     writer,

	"leaderworkerset.changeLeader":    unguarded("its callers, patchLeader and own, ask the guard"),
	"leaderworkerset.deleteLeader":    unguarded("StatefulSets create their pods again by design; restarts of groups have a backoff and a limit"),
	"leaderworkerset.deleteRevisions": guardedIn("deleteRevisions"),
	"leaderworkerset.touch":           guardedIn("touch"),

	"sequentialjob.Apply":         plans,
	"sequentialjob.delete":        writer,
	"sequentialjob.end":           unguarded("see DeleteOwner"),
	"sequentialjob.setFinalizers": guardedIn("setFinalizers"),
	"sequentialjob.suspend":       writer,

	"kueue.apply":  guardedIn("ApplyHold"),
	"kueue.create": guardedIn("create"),
	"kueue.delete": guardedIn("delete"),
	"kueue.patch":  guardedIn("SetActive"),

	"podgroup.label": guardedIn("label"),

	"endpointslices.createAll":    guardedIn("create"),
	"endpointslices.deleteSlices": unguarded("pods may have the addresses of another one by now, so that they may not wait"),
	"endpointslices.patchService": guardedIn("switchOver"),
	"endpointslices.publish":      unguarded("the record is written at an interval, whatever others do"),
	"endpointslices.service":      unguarded("the record is written at an interval, whatever others do"),
	"endpointslices.update":       guardedIn("updateOne"),

	"gang.Create": wrapper, "gang.Delete": wrapper, "gang.Patch": wrapper,
}

// TestEachWriteHasAGuard finds calls of clients that change something, by the name of the method and the context as the first argument.
func TestEachWriteHasAGuard(t *testing.T) {
	functions, found := map[string][]*ast.FuncDecl{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/simulation/") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel("../..", filepath.Dir(path))
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				name := filepath.ToSlash(dir) + "." + function.Name.Name
				functions[name] = append(functions[name], function)
				found[name] = found[name] || calls(function, writeVerbs, true)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(found, func(_ string, writes bool) bool { return !writes })
	for name := range found {
		if writesOfControllers[name] == nil {
			t.Errorf("%s changes something and is not in the list: name the function that asks a guard before (see Guard), or why it needs none", name)
		}
	}
	for name, why := range writesOfControllers {
		in, guards := why.(guardedIn)
		asks := name[:strings.LastIndex(name, ".")+1] + string(in)
		switch {
		case !found[name]:
			t.Errorf("%s is in the list and changes nothing", name)
		case guards && !slices.ContainsFunc(functions[asks], func(f *ast.FuncDecl) bool { return calls(f, guardMethods, false) }):
			t.Errorf("%s is to ask a guard for %s, and does not", asks, name)
		}
	}
}

// calls returns whether a function calls one of the methods, also in functions within it; if asksAPI is true, only those with a context as
// the first argument.
func calls(function *ast.FuncDecl, methods []string, asksAPI bool) (found bool) {
	ast.Inspect(function.Body, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall {
			if selector, ok := node.(*ast.SelectorExpr); ok && !asksAPI { // a method as a value
				found = found || slices.Contains(methods, selector.Sel.Name)
			}
			return true
		}
		selector, isMethod := call.Fun.(*ast.SelectorExpr)
		if !isMethod || !slices.Contains(methods, selector.Sel.Name) {
			return true
		}
		first := ""
		if len(call.Args) > 0 {
			first = fmt.Sprint(call.Args[0])
		}
		found = found || !asksAPI || slices.Contains([]string{"ctx", "calls"}, first) && len(call.Args) > 1
		return true
	})
	return found
}
