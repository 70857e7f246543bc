// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

func testQueries(t *testing.T, s *Store) {
	put(t, s, randomRuns...)
	all, namespaces := filters(), []string{"", "team"}
	selected := selector(t, s)
	for _, namespace := range namespaces {
		check(t, found(s), namespace)
	}
	for i, first := range all {
		for _, namespace := range namespaces {
			check(t, found(s), namespace, first)
		}
		for j, second := range all[:i] {
			check(t, selected, namespaces[(i+j)%2], first, second)
		}
	}
	page, err := s.List(t.Context(), api.Query{Labels: labels.Nothing()})
	if err != nil || len(page.Runs) != 0 || page.Continue != "" {
		t.Errorf("want nothing for a selector of nothing, got %+v, %v", page, err)
	}
}

// find returns the runs of a query, in the order of the answer.
type find func(t *testing.T, query api.Query) []string

// check compares what filters find together with what they mean.
func check(t *testing.T, find find, namespace string, filters ...filter) {
	t.Helper()
	query := api.Query{Namespace: namespace, Limit: 30}
	names := []string{"namespace " + namespace}
	for _, f := range filters {
		f.add(t, &query)
		names = append(names, f.name)
	}
	want := []string{}
	for _, run := range randomRuns {
		if (namespace == "" || run.Namespace == namespace) && !slices.ContainsFunc(filters, func(f filter) bool { return !f.matches(run) }) {
			want = append(want, sortable(run.EndTime.Time, string(run.UID)))
		}
	}
	slices.Sort(want)
	got := find(t, query)
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b[:len(sortedBy)], a[:len(sortedBy)]) }) {
		t.Errorf("%s: runs are not sorted", strings.Join(names, " and "))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: other runs (-want +got):\n%s", strings.Join(names, " and "), diff)
	}
}

const sortedBy = "2006-01-02T15:04:05.000000Z"

// sortable returns the end and the UID of a run. The end comes first, and has the same length for all runs.
func sortable(end time.Time, uid string) string { return end.UTC().Format(sortedBy) + " " + uid }

// found returns what all pages of a query have.
func found(s *Store) find {
	return func(t *testing.T, query api.Query) []string {
		t.Helper()
		list := []string{}
		for {
			page, err := s.List(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range page.Runs {
				list = append(list, sortable(run.EndTime.Time, string(run.UID)))
			}
			if query.Continue = page.Continue; page.Continue == "" {
				return list
			}
		}
	}
}

// selector returns what a query selects without reading the runs, which takes most of the time.
func selector(t *testing.T, s *Store) find {
	t.Helper()
	uids := map[int64]string{}
	err := session{s.db, s.dialect}.each(t.Context(), func(scan func(...any) error) error {
		var id int64
		var uid string
		err := scan(&id, &uid)
		uids[id] = uid
		return err
	}, `SELECT id, uid FROM archive_runs`)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, query api.Query) []string {
		t.Helper()
		p, err := planOf(query)
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		positions, err := session{s.db, s.dialect}.positions(t.Context(), p, first, len(randomRuns)+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range positions {
			list = append(list, sortable(time.UnixMicro(at.ended), uids[at.run]))
		}
		return list
	}
}

func testPagesMeanwhile(t *testing.T, s *Store) {
	put(t, s, randomRuns[:40]...)
	for _, size := range []int{1, 7, api.MaxLimit} {
		for _, fields := range [][]api.Requirement{
			nil,
			{{Field: api.FieldState, Value: "Completed"}},
			{{Field: api.FieldState, Value: "Completed", Not: true}},
			{{Field: api.FieldBeganBefore, Value: "2026-03-01T00:00:00Z"}},
		} {
			query := api.Query{Fields: fields, Limit: size}
			before := idsOf(t, s, query, func(int) {})
			added := 0
			during := idsOf(t, s, query, func(page int) {
				if page < 10 {
					added++
					put(t, s, newRun(100_000*size+added, endedAt(float64(added*600))), newRun(200_000*size+added, endedAt(-float64(added))))
				}
			})
			seen := map[string]int{}
			for _, id := range during {
				seen[id]++
			}
			for _, id := range before {
				if seen[id] != 1 {
					t.Errorf("pages of %d by %v: want run %s once, got %d times", size, fields, id, seen[id])
				}
			}
			for id, times := range seen {
				if times != 1 {
					t.Errorf("pages of %d by %v: run %s is returned %d times", size, fields, id, times)
				}
			}
		}
	}
}

// idsOf returns the UIDs of all runs of a query, and calls the function after each page.
func idsOf(t *testing.T, s *Store, query api.Query, after func(page int)) []string {
	t.Helper()
	var ids []string
	for n := 1; ; n++ {
		page, err := s.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Runs) > query.Limit {
			t.Fatalf("want a page of at most %d runs, got %d", query.Limit, len(page.Runs))
		}
		for _, run := range page.Runs {
			ids = append(ids, string(run.UID))
		}
		if query.Continue = page.Continue; page.Continue == "" {
			return ids
		}
		after(n)
	}
}

func testTokens(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 10)...)
	parse := func(selector string) labels.Selector {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	query := api.Query{Namespace: "team", Limit: 3, Labels: parse("number,number!=11"),
		Fields: []api.Requirement{{Field: api.FieldUser, Value: "alice"}, {Field: api.FieldState, Value: "Completed"}}}
	page, err := s.List(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	token := page.Continue
	for name, c := range map[string]struct {
		change func(q *api.Query)
		gone   bool
	}{
		"the same query":                        {func(*api.Query) {}, false},
		"another limit":                         {func(q *api.Query) { q.Limit = 5 }, false},
		"another order of requirements":         {func(q *api.Query) { slices.Reverse(q.Fields) }, false},
		"another namespace":                     {func(q *api.Query) { q.Namespace = "other" }, true},
		"all namespaces":                        {func(q *api.Query) { q.Namespace = "" }, true},
		"another label":                         {func(q *api.Query) { q.Labels = parse("number") }, true},
		"no labels":                             {func(q *api.Query) { q.Labels = nil }, true},
		"no field":                              {func(q *api.Query) { q.Fields = nil }, true},
		"another value":                         {func(q *api.Query) { q.Fields[0].Value = "bob" }, true},
		"another operator":                      {func(q *api.Query) { q.Fields[0].Not = true }, true},
		"a token that was cut":                  {func(q *api.Query) { q.Continue = token[1:] }, true},
		"a token that is longer":                {func(q *api.Query) { q.Continue = token + "A" }, true},
		"a token of another version":            {func(q *api.Query) { q.Continue = "_" + token[1:] }, true},
		"a token that is not encoded":           {func(q *api.Query) { q.Continue = strings.Repeat("!", len(token)) }, true},
		"a token that is very long":             {func(q *api.Query) { q.Continue = strings.Repeat("A", 1<<20) }, true},
		"a token that is one sign":              {func(q *api.Query) { q.Continue = "1" }, true},
		"a token with a position of other runs": {func(q *api.Query) { q.Continue = token[:len(token)-20] + strings.Repeat("_", 20) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := query
			q.Fields, q.Continue = slices.Clone(query.Fields), token
			c.change(&q)
			_, err := s.List(t.Context(), q)
			if c.gone != errors.Is(err, api.ErrGone) || !c.gone && err != nil {
				t.Errorf("want ErrGone: %t, got %v", c.gone, err)
			}
		})
	}
}

func testBadQueries(t *testing.T, s *Store) {
	field := func(field api.Field, value string, not bool) api.Query {
		return api.Query{Fields: []api.Requirement{{Field: field, Value: value, Not: not}}}
	}
	selector := func(text string) api.Query {
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return api.Query{Labels: parsed}
	}
	for want, query := range map[string]api.Query{
		`bad query: runs cannot be selected by the field "color"`:                                                                 field("color", "red", false),
		`bad query: the selector of field endedAfter must use = or ==, and uses !=`:                                               field(api.FieldEndedAfter, "2026-01-01T00:00:00Z", true),
		`bad query: the selector of field beganBefore must have a time in RFC 3339, such as 2026-01-31T15:04:05Z, and has "noon"`: field(api.FieldBeganBefore, "noon", false),
		`bad query: the selector of label "size" must use =, ==, !=, in, notin, or test whether the label exists, and uses gt`:    selector("size>3"),
		`bad query: the selector of label "a" must have at most 100 values, and has 101`:                                          selector("a in (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(rand.Perm(101))), ","), "[]") + ")"),
		`bad query: the limit must not be negative, and is -1`:                                                                    {Limit: -1},
		`bad query: the selectors of labels and fields must have at most 32 requirements, and have 33`:                            {Fields: make([]api.Requirement, 33)},
	} {
		if _, err := s.List(t.Context(), query); !errors.Is(err, ErrBadQuery) || err.Error() != want {
			t.Errorf("want %s\n got %v", want, err)
		}
	}
}
