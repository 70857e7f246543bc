// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widget is a second kind.
var widget = Kind{Title: "Widget", Names: []string{"widget", "widgets", "wd"}, GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}

func TestParseAmongKinds(t *testing.T) {
	kinds := []For[string]{{JobSet, "sets"}, {widget, "widgets"}}
	for arg, want := range map[string][]string{
		"a":                        {"", "a", ""},
		"js/a":                     {"sets", "a", ""},
		"wd/a":                     {"widgets", "a", ""},
		"widgets.v1.example.com/a": {"widgets", "a", ""},
		"job/a":                    {"", "", `NAME: must be a JobSet or Widget, as NAME, jobset/NAME or widget/NAME, not "job/a"`},
	} {
		parsed, err := Parse(kinds, []string{arg})
		message, name, kind := "", "", For[string]{}
		if err != nil {
			message = err.Error()
		} else if name = parsed.Name; parsed.given >= 0 {
			kind = kinds[parsed.given]
		}
		if diff := cmp.Diff(want, []string{kind.Do, name, message}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arg, diff)
		}
	}
	if got := widget.Qualified("a"); got != "widget.example.com/a" {
		t.Errorf("qualified name %s", got)
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args              []string
		wantName, wantErr string
	}{
		"a name":                             {args: []string{"train"}, wantName: "train"},
		"a name with the resource":           {args: []string{"jobset/train"}, wantName: "train"},
		"a name with the plural":             {args: []string{"jobsets/train"}, wantName: "train"},
		"a name with the short name":         {args: []string{"js/train"}, wantName: "train"},
		"a name with the group":              {args: []string{"jobset.jobset.x-k8s.io/train"}, wantName: "train"},
		"a name with version and group":      {args: []string{"jobsets.v1alpha2.jobset.x-k8s.io/train"}, wantName: "train"},
		"no name":                            {wantErr: "NAME: give the name of a JobSet; `kubectl jobset list` lists them"},
		"two names":                          {args: []string{"a", "b"}, wantErr: "NAME: must be one JobSet, not 2 (a, b)"},
		"another resource":                   {args: []string{"job/train"}, wantErr: `NAME: must be a JobSet, as NAME or jobset/NAME, not "job/train"`},
		"a JobSet of another group":          {args: []string{"jobset.example.com/train"}, wantErr: `NAME: must be a JobSet, as NAME or jobset/NAME, not "jobset.example.com/train"`},
		"the resource without a name":        {args: []string{"jobset/"}, wantErr: `NAME: must be NAME or jobset/NAME, not "jobset/"`},
		"a name with a second slash":         {args: []string{"jobset/a/b"}, wantErr: `NAME: must be NAME or jobset/NAME, not "jobset/a/b"`},
		"the resource and the name as words": {args: []string{"jobset", "train"}, wantErr: "NAME: must be one JobSet, not 2 (jobset, train)"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse([]For[bool]{{Kind: JobSet}}, tc.args)
			message, got := "", parsed.Name
			if err != nil {
				message, got = err.Error(), ""
			}
			if diff := cmp.Diff([]string{tc.wantName, tc.wantErr}, []string{got, message}); diff != "" {
				t.Errorf("name and error (-want +got):\n%s", diff)
			}
		})
	}
}
