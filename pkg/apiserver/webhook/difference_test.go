// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func TestDifference(t *testing.T) {
	cases := map[string]struct{ from, to, want string }{
		"the same":             {`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, ""},
		"a key":                {`{"a":{}}`, `{"a":{"b/c~d":""}}`, `[{"op":"add","path":"/a/b~1c~0d","value":""}]`},
		"a value":              {`{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
		"no key":               {`{"a":1,"b":1}`, `{"b":1}`, `[{"op":"remove","path":"/a"}]`},
		"another type":         {`{"a":{}}`, `{"a":[]}`, `[{"op":"replace","path":"/a","value":[]}]`},
		"items of the same":    {`{"a":[{"name":"x","v":1},{"name":"y"}]}`, `{"a":[{"name":"x","v":2},{"name":"y"}]}`, `[{"op":"replace","path":"/a/0/v","value":2}]`},
		"items in front":       {`{"a":[{"name":"x"}]}`, `{"a":[{"name":"y"},{"name":"x"}]}`, `[{"op":"add","path":"/a/0","value":{"name":"y"}}]`},
		"items at the end":     {`{"a":[1]}`, `{"a":[1,2,3]}`, `[{"op":"add","path":"/a/1","value":2},{"op":"add","path":"/a/2","value":3}]`},
		"items less":           {`{"a":[1,2,1,3]}`, `{"a":[1,3]}`, `[{"op":"remove","path":"/a/1"},{"op":"remove","path":"/a/1"}]`},
		"one instead of other": {`{"a":[1,2,3]}`, `{"a":[1,4,3]}`, `[{"op":"remove","path":"/a/1"},{"op":"add","path":"/a/1","value":4}]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := difference(json.RawMessage(c.from), json.RawMessage(c.to))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDifferenceLeadsToTheOtherObject applies patches between random objects.
func TestDifferenceLeadsToTheOtherObject(t *testing.T) {
	dice := rand.New(rand.NewSource(1))
	for range 5000 {
		from, to := object(dice, 3), object(dice, 3)
		leads(t, from, to)
	}
}

// TestDifferenceOfLongLists shows that lists that differ a lot are replaced, and that comparing them is not quadratic.
func TestDifferenceOfLongLists(t *testing.T) {
	var from, to []any
	for i := range 20_000 {
		from, to = append(from, fmt.Sprint("a", i)), append(to, fmt.Sprint("b", i))
	}
	patch := leads(t, map[string]any{"a": from}, map[string]any{"a": to})
	if !strings.HasPrefix(patch, `[{"op":"replace","path":"/a","value":`) {
		t.Errorf("the patch begins with %.100s", patch)
	}
}

func leads(t *testing.T, from, to any) string {
	t.Helper()
	before, after := encoded(from), encoded(to)
	data, err := difference(json.RawMessage(before), json.RawMessage(after))
	if err != nil {
		t.Fatal(err)
	}
	if data == nil {
		data = []byte("[]")
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Apply([]byte(before))
	if err != nil || !jsonpatch.Equal(got, []byte(after)) {
		t.Fatalf("%s\nwith %s\nis %s\nnot %s (%v)", before, data, got, after, err)
	}
	return string(data)
}

// object returns a random object, whose names and values are so few that many are the same.
func object(dice *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range dice.Intn(4) {
		m[[]string{"a", "b/c", "d~e", "name"}[dice.Intn(4)]] = anything(dice, depth-1)
	}
	return m
}

func anything(dice *rand.Rand, depth int) any {
	switch kind := dice.Intn(4); {
	case depth > 0 && kind == 0:
		return object(dice, depth)
	case depth > 0 && kind == 1:
		list := make([]any, dice.Intn(5))
		for i := range list {
			list[i] = anything(dice, depth-1)
		}
		return list
	case kind == 2:
		return dice.Intn(3)
	}
	return []string{"x", "y", ""}[dice.Intn(3)]
}
