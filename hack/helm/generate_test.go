// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGenerated checks that the files in templates/generated match the artifacts that they are generated from.
func TestGenerated(t *testing.T) {
	want, err := templates(filepath.Join(root, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, chartDir, "templates", "generated")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name()] = string(content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run make generate; the chart differs from artifacts (-want +got):\n%s", diff)
	}
}

// TestTemplate checks how a manifest becomes a template.
func TestTemplate(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want, wantError string }{
		"labels are added, comments stay": {
			manifest: "# why\nkind: Role\nmetadata:\n  name: a\n  labels:\n    app.kubernetes.io/part-of: jobset-apiserver\n    x: y\n",
			want: "# why\nkind: Role\nmetadata:\n  {{- with include \"jobset.annotations\" (list $ false) }}\n  annotations:\n    {{- . | nindent 4 }}\n  {{- end }}\n" +
				"  name: a\n  labels:\n    {{- include \"jobset.labels\" . | nindent 4 }}\n    x: y\n",
		},
		"templates of others stay text": {
			manifest: "kind: A\nmetadata:\n  annotations:\n    b: c\n  labels:\n    x: y\n  name: a\nspec: {a: '{{ $labels.x }}'}\n",
			want: "kind: A\nmetadata:\n  annotations:\n    {{- with include \"jobset.annotations\" (list $ false) }}{{ . | nindent 4 }}{{- end }}\n    b: c\n" +
				"  labels:\n    {{- include \"jobset.labels\" . | nindent 4 }}\n    x: y\n  name: a\nspec: {a: '{{ \"{{\" }} $labels.x }}'}\n",
		},
		"the archive is always served": {
			manifest: "kind: APIService\nmetadata: {name: v1.a, labels: {x: y}}\nspec: {group: archive.jobset-apiserver.io}\n",
			want:     "kind: APIService\nmetadata: {name: v1.a, labels: {x: y}}\nspec: {group: archive.jobset-apiserver.io}\n",
		},
		"no name":       {manifest: "kind: A\n", wantError: "an object has no name"},
		"unknown group": {manifest: "kind: APIService\nmetadata: {name: v1.x.io}\nspec: {group: x.io}\n", wantError: "APIService v1.x.io: the chart has no value for the group x.io"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := template(test.manifest)
			if test.wantError != "" {
				if err == nil || err.Error() != test.wantError {
					t.Errorf("the error must be %q, is %v", test.wantError, err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestCommands checks the command line.
func TestCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"install"}, {"generate", "x"}} {
		if err := run(root, args); err == nil || !strings.Contains(err.Error(), "the command must be generate, is") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
