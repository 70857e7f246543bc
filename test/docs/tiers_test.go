// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// longPackages run with `make long` only, all of their tests.
var longPackages = []string{"test/nodes", "test/peers", "test/helm", "test/dns", "test/upgrade", "test/matrix", "test/bench", "test/hostile"}

// inTheGate are tests of the gate that stop a program which the tests of their suite share: each kind of fault has one there.
var inTheGate = map[string]string{
	"test/e2e.TestControllerContinuesAfterRestart":    "the one restart of the controller; runs last and alone",
	"test/faults.TestControllerKilledAtAnyWrite":      "nothing is created twice, with a fixed seed",
	"test/loss.TestWrongStoresLoseNothing":            "one wrong store",
	"test/e2e.TestServerSideApplyTwiceChangesNothing": "waits until a status rests",
	"test/e2e.TestClientSideApplyAndDiff":             "waits until a status rests",
}

// memoryField is a line of /proc/PID/status.
var memoryField = regexp.MustCompile("VmHWM|VmRSS|RssAnon")

// longestSleep is the longest time for which a test of the gate may sleep.
const longestSleep = 5 * time.Second

// TestLongTestsAreOnRequest looks for tests of the gate that need a machine with time to spare, or break what others share. They start a cluster, stop a
// program, sleep for long, compare wall times, or read resident memory, and do not begin with tier.OnRequest.
func TestLongTestsAreOnRequest(t *testing.T) {
	tests, found := 0, map[string]bool{}
	for _, dir := range testPackages(t) {
		p := parseTests(t, filepath.Join(root, dir))
		for _, test := range p.tests {
			tests++
			if p.onRequest(test) {
				continue
			}
			name := dir + "." + test
			for _, what := range p.slow(test, map[string]bool{}) {
				found[name] = true
				if inTheGate[name] == "" {
					t.Errorf("%s %s: begin it with tier.OnRequest, or mend it as docs/development.md#tiers describes", name, what)
				}
			}
		}
	}
	if tests < 2000 {
		t.Errorf("%d tests were found, want at least 2000, or the search has stopped working", tests)
	}
	for name := range inTheGate {
		if !found[name] {
			t.Errorf("%s is an exception and need not be one", name)
		}
	}
}

// TestSlowTestsAreRecognized shows that the rule above finds what it looks for.
func TestSlowTestsAreRecognized(t *testing.T) {
	for body, want := range map[string]string{
		`startCluster(t, "x")`:                         "starts a cluster",
		`gated.use(t)`:                                 "starts a cluster",
		`k.cluster.Script("stop", "apiserver")`:        "stops a program of the cluster",
		`time.Sleep(2 * 3 * time.Second)`:              "sleeps for 6s",
		`time.Sleep(time.Minute)`:                      "sleeps for 1m0s",
		`if time.Since(start) > limit { t.Fail() }`:    "compares a wall time",
		`p.AnonymousPeak(t)`:                           "reads resident memory",
		`helper(t)`:                                    "sleeps for 5s",
		`time.Sleep(100 * time.Millisecond)`:           "",
		`synctest.Test(t, func() { helper(t) })`:       "",
		`t.Logf("after %s", time.Since(start))`:        "",
		`k.cluster.Script("kubectl", "apply", "stop")`: "",
	} {
		t.Run(body, func(t *testing.T) {
			dir := t.TempDir()
			source := "package x\nfunc TestX(t *testing.T) {\n" + body + "\n}\nfunc helper(t *testing.T) { time.Sleep(5 * time.Second) }\n"
			if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o644); err != nil {
				t.Fatal(err)
			}
			p := parseTests(t, dir)
			if got := strings.Join(p.slow("TestX", map[string]bool{}), ", "); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
			if p.onRequest("TestX") {
				t.Error("the test is on request, want not")
			}
		})
	}
}

// testPackages returns the directories with tests that run in the gate.
func testPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, top := range []string{"pkg", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			inLong := func(long string) bool { return dir == long || strings.HasPrefix(dir, long+"/") }
			if !slices.Contains(dirs, dir) && !slices.ContainsFunc(longPackages, inLong) {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// testPackage is what the tests of a package declare.
type testPackage struct {
	tests     []string
	functions map[string][]*ast.FuncDecl // by name; methods of several types may have the same
}

func parseTests(t *testing.T, dir string) testPackage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := testPackage{functions: map[string][]*ast.FuncDecl{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			name := function.Name.Name
			p.functions[name] = append(p.functions[name], function)
			if function.Recv == nil && strings.HasPrefix(name, "Test") && name != "TestMain" {
				p.tests = append(p.tests, name)
			}
		}
	}
	return p
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
	return true
}

// slow returns what the function, or one of the package that it calls, does that a test of the gate must not do. A test that runs in a bubble has a
// clock of its own. A function that is on request in itself, such as a case of a table, is left out.
func (p testPackage) slow(name string, seen map[string]bool) []string {
	if seen[name] {
		return nil
	}
	seen[name] = true
	var found []string
	for _, function := range p.functions[name] {
		if p.onRequest(name) || inBubble(function.Body) {
			continue
		}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			if what := slowNode(node); what != "" {
				found = append(found, what)
			}
			if called, ok := node.(*ast.CallExpr); ok {
				base := calledName(called)
				found = append(found, p.slow(base[strings.LastIndex(base, ".")+1:], seen)...)
			}
			return true
		})
	}
	return found
}

// inBubble says that the function starts a bubble.
func inBubble(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		found = found || ok && calledName(call) == "synctest.Test"
		return !found
	})
	return found
}

// slowNode says what a node of a syntax tree does that a test of the gate must not do; "" for nothing.
func slowNode(node ast.Node) string {
	switch node := node.(type) {
	case *ast.CallExpr:
		switch name := calledName(node); {
		case name == "startCluster" || name == "gated.use":
			return "starts a cluster"
		case strings.HasSuffix(name, ".Script") && len(node.Args) > 0 && literal(node.Args[0]) == "stop":
			return "stops a program of the cluster"
		case strings.HasSuffix(name, ".AnonymousPeak"):
			return "reads resident memory"
		case name == "time.Sleep" && len(node.Args) == 1 && duration(node.Args[0]) >= longestSleep:
			return "sleeps for " + duration(node.Args[0]).String()
		}
	case *ast.BinaryExpr:
		comparison := slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, node.Op)
		if comparison && (sinceCall(node.X) || sinceCall(node.Y)) {
			return "compares a wall time"
		}
	case *ast.BasicLit:
		if memoryField.MatchString(node.Value) {
			return "reads resident memory"
		}
	}
	return ""
}

// calledName is the name of what is called, with what it is selected from: "time.Sleep", "k.cluster.Script"; "" for other expressions.
func calledName(call *ast.CallExpr) string { return dotted(call.Fun) }

func dotted(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

func sinceCall(expression ast.Expr) bool {
	call, ok := expression.(*ast.CallExpr)
	return ok && calledName(call) == "time.Since"
}

func literal(expression ast.Expr) string {
	if l, ok := expression.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return ""
}

// duration returns the value of expressions such as 5*time.Second; 0 for others.
func duration(expression ast.Expr) time.Duration {
	switch e := expression.(type) {
	case *ast.SelectorExpr:
		return map[string]time.Duration{"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour}[dotted(e)]
	case *ast.BinaryExpr:
		if e.Op == token.MUL {
			x, y := factor(e.X), factor(e.Y)
			return x * y
		}
	}
	return 0
}

func factor(expression ast.Expr) time.Duration {
	if literal, ok := expression.(*ast.BasicLit); ok && literal.Kind == token.INT {
		n, err := strconv.Atoi(literal.Value)
		if err == nil {
			return time.Duration(n)
		}
	}
	return duration(expression)
}
