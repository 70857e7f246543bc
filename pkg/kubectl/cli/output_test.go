// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestOutput(t *testing.T) {
	data := struct {
		Name  string `json:"name"`
		Count int    `json:"count,omitempty"`
		Jobs  []int  `json:"jobs"`
	}{Name: "train", Jobs: []int{1, 2}}
	const formats = "go-template,go-template-file,html,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,template,templatefile,yaml"
	for name, tc := range map[string]struct {
		flags         []string
		want, wantErr string
	}{
		"JSON": {flags: []string{"-o", "json"}, want: `{
    "kind": "WidgetTree",
    "apiVersion": "kubectl.jobset-apiserver.io/v1alpha1",
    "name": "train",
    "jobs": [
        1,
        2
    ]
}
`},
		"YAML": {flags: []string{"--output=yaml"}, want: `apiVersion: kubectl.jobset-apiserver.io/v1alpha1
jobs:
- 1
- 2
kind: WidgetTree
name: train
`},
		"KYAML":                        {flags: []string{"-o", "kyaml"}, want: "---\n{\n  kind: \"WidgetTree\",\n  apiVersion: \"kubectl.jobset-apiserver.io/v1alpha1\",\n  name: \"train\",\n  jobs: [\n    1,\n    2,\n  ],\n}\n"},
		"JSONPath":                     {flags: []string{"-o", "jsonpath={.kind} {.jobs[*]}"}, want: "WidgetTree 1 2"},
		"a template":                   {flags: []string{"-o", "go-template={{.name}}"}, want: "train"},
		"a template without -o":        {flags: []string{"--template={{.name}}"}, want: "train"},
		"another format":               {flags: []string{"-o", "wide"}, wantErr: `unable to match a printer suitable for the output format "wide", allowed formats are: ` + formats},
		"names, which reports lack":    {flags: []string{"-o", "name"}, wantErr: `unable to match a printer suitable for the output format "name", allowed formats are: ` + formats},
		"an expression that is broken": {flags: []string{"-o", "jsonpath={.name"}, wantErr: "error parsing jsonpath {.name, unclosed action"},
	} {
		t.Run(name, func(t *testing.T) {
			var o Output
			cmd := &cobra.Command{}
			o.AddFlags(cmd, "html")
			if err := cmd.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			message := ""
			if err := o.Validate(); err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, message); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if tc.wantErr != "" {
				return
			}
			var out strings.Builder
			if err := o.PrintReport(&out, "WidgetTree", data); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputOfTheCommandItself(t *testing.T) {
	for flags, want := range map[string][2]bool{
		"":       {true, false},
		"-ohtml": {false, true},
		"-ojson": {false, false},
	} {
		var o Output
		cmd := &cobra.Command{}
		o.AddFlags(cmd, "html")
		if err := cmd.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, [2]bool{o.ForHumans(), o.Is("html")}); diff != "" {
			t.Errorf("%q is for humans, and HTML (-want +got):\n%s", flags, diff)
		}
	}
}
