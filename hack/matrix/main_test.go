// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	for name, content := range map[string]string{
		"1.34.features": `{"version": "1.34.4", "podgroups": "absent", "GenericWorkload": "absent"}`,
		"1.35.features": `{"version": "1.35.4", "podgroups": "absent", "GenericWorkload": "alpha, off", "ContainerRestartRules": "beta, on"}`,
		"1.36.features": `{"version": "1.36.3", "podgroups": "absent", "GenericWorkload": "alpha, off", "ContainerRestartRules": "beta, on"}`,
		"1.37.features": `{"version": "1.37.2", "podgroups": "v1beta1", "GenericWorkload": "beta, on", "ContainerRestartRules": "beta, on"}`,
		"1.35-parity.json": `{"ImportPath":"p/q [p/q.test]","Action":"build-fail"}
{"Action":"fail","Package":"p/q","FailedBuild":"p/q [p/q.test]"}
`,
		"1.34-integration.json": `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL"}
{"Action":"fail","Package":"p","Test":"TestB/c"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
`,
		"1.37-e2e.json": `{"Action":"pass","Package":"p","Test":"TestD"}`,
		"etcd-3.5.json": `{"Action":"pass","Package":"p","Test":"TestA"}`,
		"page.md":       "# Page\n\n" + begin + "stale\n" + end + "\nThe end.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, page, "commit c of today"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Page\n\n" + begin + "\nTested: commit c of today.\n", "| 1.35.4 | not run | 0 passed, failed: q | not run |\n", "| 1.34.4 | 1 passed, 1 skipped, failed: TestB | not run | not run |\n", "| 1.37.2 | not run | not run | 1 passed |\n",
		"| 3.5 | 1 passed |\n", "| Without flags | 1.34.4 | 1.35.4 | 1.36.3 | 1.37.2 |\n", "| gate `GenericWorkload` | absent | alpha, off | alpha, off | beta, on |\n",
		"| groups of pods and gangs of `scheduling.k8s.io` | no | no | with flags of the cluster | **yes** |\n",
		"| in-place restart, agent as the main container | no | **yes** | **yes** | **yes** |\n", end + "\nThe end.\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "stale") {
		t.Error("the former tables are left")
	}
}

func TestMistakesAreNamed(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := run(dir, page, "commit c of today"); err == nil || !strings.Contains(err.Error(), "has no results: use hack/matrix.sh") {
		t.Errorf("without results: %v", err)
	}
	for name, content := range map[string]string{"1.37.features": "{}", "page.md": "# Page\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, page, "commit c of today"); err == nil || !strings.Contains(err.Error(), "must have the comments") {
		t.Errorf("without a place for the tables: %v", err)
	}
}

// TestShortTestsExist compares the short list of hack/matrix.sh with the tests: go test ignores names that do not exist.
func TestShortTestsExist(t *testing.T) {
	script, err := os.ReadFile("../matrix.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "\nshort=(\n")
	list, _, found := strings.Cut(list, "\n)\n")
	if !found {
		t.Fatal("hack/matrix.sh has no list of short tests")
	}
	files, err := filepath.Glob("../../test/e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(content)
	}
	for name := range strings.FieldsSeq(list) {
		if !strings.Contains(tests.String(), "\nfunc Test"+name+"(") {
			t.Errorf("hack/matrix.sh runs Test%s, which test/e2e does not have", name)
		}
	}
}
