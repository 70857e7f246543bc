// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// tiny is a program that compiles in seconds, because it needs nothing but the runtime of Go and one package.
var tiny = program{Name: "tiny", Package: "./cmd/tiny", Description: "Prints a word.", Ports: []string{"8443/tcp"}}

var tinyFiles = map[string]string{
	"go.mod":           "module example.com/tiny\n\ngo 1.26.0\n\nrequire example.com/word v1.2.3\n\nreplace example.com/word => ./word\n",
	"cmd/tiny/main.go": "package main\n\nimport \"example.com/word\"\n\nvar version = \"none\"\n\nfunc main() { println(word.Word, version) }\n",
	"word/go.mod":      "module example.com/word\n\ngo 1.26.0\n",
	"word/word.go":     "package word\n\nconst Word = \"hello\"\n",
	"LICENSE":          "Anybody may print it.\n",
}

// tinyRelease writes the module of the tiny program into a directory of its own.
func tinyRelease(t *testing.T, below string) *release {
	t.Helper()
	root := filepath.Join(t.TempDir(), below)
	for name, content := range tinyFiles {
		file := filepath.Join(root, "source", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{
		Source:   golang.Source{Dir: filepath.Join(root, "source"), LDFlags: "-s -w -X main.version=v1.2.3"},
		Output:   filepath.Join(root, "output"),
		Version:  "v1.2.3",
		Revision: commit,
		Created:  1700000000,
	}
	if err := r.validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

// outputs returns the digest of each file that was written.
func outputs(t *testing.T, r *release) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.Output, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = digest(content)
	}
	return out
}

// expectSame checks that two releases wrote the same bytes, and nothing beside the files that are wanted.
func expectSame(t *testing.T, first, second *release, files []string) {
	t.Helper()
	got := outputs(t, first)
	if diff := cmp.Diff(got, outputs(t, second)); diff != "" {
		t.Errorf("built in another directory (-first +second):\n%s", diff)
	}
	names := map[string]bool{}
	for name := range got {
		names[name] = true
	}
	want := map[string]bool{}
	for _, name := range files {
		want[name] = true
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
