// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

const (
	permission = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted`
	disclaimer = `

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY
DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION,
ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
	zeroBSD = permission + "." + disclaimer
	isc     = "Copyright (c) 2026 Example\n\n" + permission +
		", provided that the above copyright notice and this permission notice appear in all copies." + disclaimer
)

// collect returns the modules of a program that has one dependency, with more files in it.
func collect(t *testing.T, files map[string]string) []Module {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"go.mod":            "module example.com/tiny\n\ngo 1.26.0\n\nrequire example.com/word v1.2.3\n\nreplace example.com/word => ./word\n",
		"main.go":           "package main\n\nimport \"example.com/word/deep/er\"\n\nfunc main() { println(er.Word) }\n",
		"word/go.mod":       "module example.com/word\n\ngo 1.26.0\n",
		"word/deep/er/a.go": "package er\n\nconst Word = \"hello\"\n",
		"LICENSE":           zeroBSD,
	}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	programs := map[golang.Platform][]string{{OS: "linux", Arch: "amd64"}: {"."}, {OS: "linux", Arch: "arm64"}: {"."}}
	modules, err := Collect(t.Context(), golang.Source{Dir: dir}, programs)
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// policy reads a policy from a text.
func policy(t *testing.T, text string) (Policy, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "licenses.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadPolicy(file)
}

func TestCheck(t *testing.T) {
	const allowed = "allowed: [ISC, BSD-3-Clause]\n"
	tests := map[string]struct {
		files  map[string]string
		policy string
		want   string
	}{
		"an allowed license":     {map[string]string{"word/LICENSE": isc}, allowed, ""},
		"another license":        {map[string]string{"word/LICENSE": zeroBSD}, allowed, "example.com/word v1.2.3: license 0BSD in LICENSE is not allowed"},
		"no license":             {nil, allowed, "example.com/word v1.2.3: no file with a license found"},
		"a text that is unknown": {map[string]string{"word/COPYING.md": "Ask us."}, allowed, "license unrecognized in COPYING.md is not allowed"},
		"a notice only":          {map[string]string{"word/NOTICE": isc}, allowed, "no file with a license found"},
		"another license of the package": {
			map[string]string{"word/LICENSE": isc, "word/deep/er/LICENSE.txt": zeroBSD}, allowed, "license 0BSD in deep/er/LICENSE.txt is not allowed",
		},
		"another license above the package": {
			map[string]string{"word/LICENSE": isc, "word/deep/COPYING": zeroBSD}, allowed, "license 0BSD in deep/COPYING is not allowed",
		},
		"another license of a package that is not linked": {map[string]string{"word/LICENSE": isc, "word/other/LICENSE": zeroBSD}, allowed, ""},
		"source code that is named after licenses":        {map[string]string{"word/LICENSE": isc, "word/license.go": "package word\n"}, allowed, ""},
		"an exception": {
			map[string]string{"word/LICENSE": zeroBSD}, allowed + "exceptions: [{module: example.com/word, licenses: [0BSD], reason: Asks for nothing.}]", "",
		},
		"an exception that is not needed": {
			map[string]string{"word/LICENSE": isc}, allowed + "exceptions: [{module: example.com/word, licenses: [0BSD], reason: Asks for nothing.}]",
			"the exception for example.com/word with license 0BSD is not needed: remove it",
		},
		"an exception for another module": {
			map[string]string{"word/LICENSE": zeroBSD}, allowed + "exceptions: [{module: example.com/words, licenses: [0BSD], reason: Asks for nothing.}]",
			"license 0BSD in LICENSE is not allowed",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			p, err := policy(t, test.policy)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(collect(t, test.files))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPolicyMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"allowed: []":  "allowed must have a license",
		"allow: [MIT]": `unknown field "allow"`,
		"allowed: [MIT]\nexceptions: [{module: example.com/word, licenses: [0BSD]}]": "exceptions[0]: module, licenses and reason are required",
	} {
		if _, err := policy(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %q", text, err, want)
		}
	}
	if _, err := ReadPolicy("missing.yaml"); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("error is %v, want one with the name of the file", err)
	}
}

func TestDocument(t *testing.T) {
	modules := []Module{
		{Path: "example.com/a", Version: "v1.0.0", Files: []File{{Name: "LICENSE", Text: "One.\n", Licenses: []string{"MIT"}}, {Name: "NOTICE", Text: "By A.\n"}}},
		{Path: "example.com/b", Version: "v2.0.0", Files: []File{{Name: "COPYING", Text: "One.\n", Licenses: []string{"MIT"}}}},
	}
	line := strings.Repeat("-", 80)
	want := "The programs of jobset-apiserver contain these modules:\n\n    example.com/a v1.0.0: MIT\n    example.com/b v2.0.0: MIT\n\n" +
		line + "\n\nexample.com/a v1.0.0, LICENSE\nexample.com/b v2.0.0, COPYING\n\nOne.\n\n" + line + "\n\nexample.com/a v1.0.0, NOTICE\n\nBy A.\n"
	if diff := cmp.Diff(want, Document(modules)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
