// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// asked is a request for a list. Selectors are as clients write them.
type asked struct {
	namespace, labels, fields, version, token string
	limit                                     int64
}

// options returns the options as the library passes them on.
func (a asked) options(t *testing.T) *internalversion.ListOptions {
	t.Helper()
	options := &internalversion.ListOptions{Limit: a.limit, Continue: a.token, ResourceVersion: a.version}
	var err error
	if a.labels != "" {
		if options.LabelSelector, err = labels.Parse(a.labels); err != nil {
			t.Fatal(err)
		}
	}
	if a.fields != "" {
		if options.FieldSelector, err = fields.ParseSelector(a.fields); err != nil {
			t.Fatal(err)
		}
	}
	return options
}

func TestQueries(t *testing.T) {
	some := func(requirements ...archive.Requirement) archive.Query {
		return archive.Query{Limit: archive.MaxLimit, Fields: requirements}
	}
	for name, tc := range map[string]struct {
		asked asked
		want  archive.Query
		empty bool
	}{
		"everything":                        {want: archive.Query{Limit: archive.MaxLimit}},
		"a namespace":                       {asked: asked{namespace: "a"}, want: archive.Query{Namespace: "a", Limit: archive.MaxLimit}},
		"a page":                            {asked: asked{limit: 50, token: "t"}, want: archive.Query{Limit: 50, Continue: "t"}},
		"a page that is too large":          {asked: asked{limit: 1 << 40}, want: archive.Query{Limit: archive.MaxLimit}},
		"any version":                       {asked: asked{version: "0"}, want: archive.Query{Limit: archive.MaxLimit}},
		"a namespace as a field":            {asked: asked{fields: "metadata.namespace=a"}, want: archive.Query{Namespace: "a", Limit: archive.MaxLimit}},
		"the namespace twice":               {asked: asked{namespace: "a", fields: "metadata.namespace=a"}, want: archive.Query{Namespace: "a", Limit: archive.MaxLimit}},
		"two namespaces":                    {asked: asked{namespace: "a", fields: "metadata.namespace=b"}, empty: true},
		"no namespace":                      {asked: asked{fields: "metadata.namespace="}, empty: true},
		"a namespace that cannot exist":     {asked: asked{namespace: "a\x00"}, empty: true},
		"a state":                           {asked: asked{fields: "state=Failed"}, want: some(archive.Requirement{Field: "state", Value: "Failed"})},
		"not a state":                       {asked: asked{fields: "state!=Failed"}, want: some(archive.Requirement{Field: "state", Value: "Failed", Not: true})},
		"no queue":                          {asked: asked{fields: "queue="}, want: some(archive.Requirement{Field: "queue"})},
		"a time in UTC":                     {asked: asked{fields: "endedAfter=2026-01-31T23:59:00Z"}, want: some(archive.Requirement{Field: "endedAfter", Value: "2026-01-31T23:59:00Z"})},
		"a time elsewhere, with a fraction": {asked: asked{fields: "beganBefore=2026-02-01T01:59:00.25+02:00"}, want: some(archive.Requirement{Field: "beganBefore", Value: "2026-01-31T23:59:00.25Z"})},
		"several fields": {asked: asked{fields: `user=a\,b,node=n1`}, want: some(
			archive.Requirement{Field: "node", Value: "n1"}, archive.Requirement{Field: "user", Value: "a,b"},
		)},
	} {
		got, empty, err := newQuery(tc.asked.namespace, tc.asked.options(t))
		if err != nil || empty != tc.empty {
			t.Errorf("%s: empty is %t, want %t: %v", name, empty, tc.empty, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); !tc.empty && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLabelsOfQueries(t *testing.T) {
	for _, selector := range []string{"team=a", "team!=a", "team in (a,b)", "team notin (a,b)", "team", "!team", "!old,team=a"} {
		query, empty, err := newQuery("", asked{labels: selector}.options(t))
		if err != nil || empty || query.Labels.String() != selector {
			t.Errorf("%s is queried as %v, %t, %v", selector, query.Labels, empty, err)
		}
	}
	options := &internalversion.ListOptions{LabelSelector: labels.Nothing()}
	if _, empty, err := newQuery("", options); !empty || err != nil {
		t.Errorf("a selector of nothing is asked of the store: %v", err)
	}
}

func TestBadQueries(t *testing.T) {
	many := func(n int, item, separator string) string {
		return strings.TrimSuffix(strings.Repeat(item+separator, n), separator)
	}
	for name, tc := range map[string]struct {
		asked asked
		want  string
	}{
		"a negative limit": {asked{limit: -1}, `limit: must not be negative, but is -1`},
		"a version":        {asked{version: "7"}, `resourceVersion: must be empty or 0, because runs have no resource version, not "7"`},
		"a token that is long": {asked{token: strings.Repeat("a", maxToken+1)},
			`continue: must be the token of the page before: list again without it`},
		"a label with an order":    {asked{labels: "size>3"}, `labelSelector: must compare label size with =, !=, in or notin, or ask whether it exists, not with > or <`},
		"many labels":              {asked{labels: many(33, "a", ",")}, `labelSelector: must have at most 32 requirements, not 33`},
		"many values":              {asked{labels: many(2, "a in (a"+strings.Repeat(",b", 1)+")", ",") + "," + manyValues(130)}, `labelSelector: must have at most 128 values, not 134`},
		"many fields":              {asked{fields: many(33, "user!=a", ",")}, `fieldSelector: must have at most 32 requirements, not 33`},
		"a long value":             {asked{fields: "user=" + strings.Repeat("a", 513)}, `fieldSelector: user must be UTF-8 without NUL, with at most 512 bytes`},
		"a value with NUL":         {asked{fields: "node=\x00"}, `fieldSelector: node must be UTF-8 without NUL, with at most 512 bytes`},
		"a value that is no UTF-8": {asked{fields: "node=\xff"}, `fieldSelector: node must be UTF-8 without NUL, with at most 512 bytes`},
		"a state that does not exist": {asked{fields: "state=Done"},
			`fieldSelector: state must be Completed, Failed, Cancelled or Deleted, not "Done"`},
		"not a namespace": {asked{fields: "metadata.namespace!=a"}, `fieldSelector: metadata.namespace must not be compared with !=`},
		"a day":           {asked{fields: "endedAfter=2026-01-31"}, `fieldSelector: endedAfter must be a time such as 2026-01-31T23:59:00Z, not "2026-01-31"`},
		"not a time":      {asked{fields: "endedAfter!=2026-01-31T23:59:00Z"}, `fieldSelector: endedAfter must not be compared with !=`},
	} {
		if _, _, err := newQuery("", tc.asked.options(t)); !apierrors.IsBadRequest(err) || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// manyValues returns a requirement with n values.
func manyValues(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = "v" + strings.Repeat("x", i%50) + string(rune('a'+i/50))
	}
	return "b in (" + strings.Join(values, ",") + ")"
}
