// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestDetails(t *testing.T) {
	options := Options{Key: []byte("key"), AllowedEnv: []string{"NCCL_*", "RANK"},
		OmittedKeys: []string{"annotation:a/secret", "label:team", "env:GONE", "field:command"}}
	r, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(value string) string { return r.hash(value) }
	for name, c := range map[string]struct{ spec, want string }{
		"values of variables": {
			spec: `{"a":[{"containers":[{"env":[{"name":"TOKEN","value":"hunter2"},{"name":"EMPTY","value":""},{"name":"REF","valueFrom":{"fieldRef":{"fieldPath":"a"}}}]}]}]}`,
			want: `{"a":[{"containers":[{"env":[{"name":"TOKEN","value":"` + hash("hunter2") + `"},{"name":"EMPTY","value":""},{"name":"REF","valueFrom":{"fieldRef":{"fieldPath":"a"}}}]}]}]}`,
		},
		"variables that are allowed": {
			spec: `{"env":[{"name":"NCCL_DEBUG","value":"INFO"},{"name":"RANK","value":"1"},{"name":"RANKS","value":"2"}]}`,
			want: `{"env":[{"name":"NCCL_DEBUG","value":"INFO"},{"name":"RANK","value":"1"},{"name":"RANKS","value":"` + hash("2") + `"}]}`,
		},
		"variables that are left out": {
			spec: `{"env":[{"name":"GONE","value":"x"},{"name":"B","value":"x"}]}`, want: `{"env":[{"name":"B","value":"` + hash("x") + `"}]}`,
		},
		"a variable without a name": {spec: `{"env":[{"value":"x"}]}`, want: `{"env":[{"value":"` + hash("x") + `"}]}`},
		"a value of another type":   {spec: `{"env":[{"name":"A","value":{"b":"x"}},"x"]}`, want: `{"env":[{"name":"A","value":"` + hash("map[b:x]") + `"}]}`},
		"labels and annotations": {
			spec: `{"template":{"metadata":{"labels":{"team":"a","b":"c"},"annotations":{"a/secret":"x","kubectl.kubernetes.io/last-applied-configuration":"{}","d":"e"}}}}`,
			want: `{"template":{"metadata":{"labels":{"b":"c"},"annotations":{"d":"e"}}}}`,
		},
		"fields":           {spec: `{"a":[{"command":["x"],"args":["y"]}],"managedFields":[]}`, want: `{"a":[{"args":["y"]}]}`},
		"what is no list":  {spec: `{"env":"x","labels":[],"annotations":1}`, want: `{"env":"x","labels":[],"annotations":1}`},
		"an object of env": {spec: `{"env":{"env":[{"name":"A","value":"x"}]}}`, want: `{"env":{"env":[{"name":"A","value":"` + hash("x") + `"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			spec, status := parse(t, c.spec), parse(t, c.spec)
			r.Details(spec, status)
			if diff := cmp.Diff(parse(t, c.want), spec); diff != "" {
				t.Errorf("the spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, c.want), status); diff != "" {
				t.Errorf("the status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHashes checks that equal values have equal hashes under one key, and others under another.
func TestHashes(t *testing.T) {
	a, b := &Redactor{key: []byte("a")}, &Redactor{key: []byte("b")}
	if first := a.hash("x"); first != a.hash("x") || first == a.hash("y") || a.hash("x") == b.hash("x") || len(a.hash("x")) != len(hashPrefix)+hashDigits {
		t.Errorf("hashes are %s, %s, %s", a.hash("x"), a.hash("y"), b.hash("x"))
	}
}

func TestMetadata(t *testing.T) {
	r, err := New(Options{OmittedKeys: []string{"label:team", "annotation:a"}})
	if err != nil {
		t.Fatal(err)
	}
	labels, annotations := map[string]string{"team": "a", "b": "c"}, map[string]string{"a": "b", "team": "a"}
	r.Metadata(labels, annotations)
	if diff := cmp.Diff([]map[string]string{{"b": "c"}, {"team": "a"}}, []map[string]string{labels, annotations}); diff != "" {
		t.Errorf("labels and annotations (-want +got):\n%s", diff)
	}
	r.Metadata(nil, nil)
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"a kind that does not exist": {Options{OmittedKeys: []string{"secret:a"}}, `"secret:a" must be annotation:KEY, label:KEY, env:NAME or field:NAME`},
		"no kind":                    {Options{OmittedKeys: []string{"a"}}, `"a" must be annotation:KEY, label:KEY, env:NAME or field:NAME`},
		"no name":                    {Options{OmittedKeys: []string{"env:"}}, `"env:" must be annotation:KEY, label:KEY, env:NAME or field:NAME`},
		"a star in the middle":       {Options{AllowedEnv: []string{"A*B"}}, `"A*B" must be the name of an environment variable, with * at the end only`},
		"two stars":                  {Options{AllowedEnv: []string{"A**"}}, `"A**" must be the name of an environment variable, with * at the end only`},
		"an empty name":              {Options{AllowedEnv: []string{""}}, `"" must be the name of an environment variable, with * at the end only`},
		"too many names":             {Options{AllowedEnv: make([]string, maxNames+1)}, `at most 1000 names are allowed`},
	} {
		if _, err := New(c.options); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestDepth checks that objects of any depth are read to the end or cut, and that no value below survives.
func TestDepth(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := `[{"env":[{"name":"A","value":"hunter2"}]}]`
	for range 200 {
		text = `[{"a":` + text + `}]`
	}
	object := parse(t, `{"a":`+text+`}`)
	r.Details(object, nil)
	if data, err := json.Marshal(object); err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("a value at a depth of 400 survives: %v", err)
	}
}

// FuzzEnv checks that no value of a variable survives wherever the list of variables is.
func FuzzEnv(f *testing.F) {
	for _, seed := range []string{`{"env":[{"name":"A","value":"hunter2"}]}`, `{"a":[{"b":{"env":[{"value":"hunter2","name":1}]}}]}`,
		`{"env":[[{"env":[{"value":["hunter2"]}]}]]}`} {
		f.Add(seed)
	}
	r, err := New(Options{Key: []byte("k")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		r.Details(object, nil)
		checkValues(t, object)
	})
}

// checkValues checks that each value in a list of variables is empty or a hash.
func checkValues(t *testing.T, value any) {
	switch value := value.(type) {
	case map[string]any:
		if list, ok := value["env"].([]any); ok {
			for _, item := range list {
				variable, ok := item.(map[string]any)
				if !ok {
					t.Errorf("a list of variables has %v", item)
					continue
				}
				if v, set := variable["value"]; set && v != "" {
					if text, ok := v.(string); !ok || !strings.HasPrefix(text, hashPrefix) {
						t.Errorf("the value of a variable is %v", v)
					}
				}
			}
		}
		for _, child := range value {
			checkValues(t, child)
		}
	case []any:
		for _, child := range value {
			checkValues(t, child)
		}
	}
}
