// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// leaves are the values of the schema without properties of their own, by their paths.
func leaves(t *testing.T) map[string]object {
	t.Helper()
	var schema object
	if err := json.Unmarshal(loadChart(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	walk(t, "", schema, all)
	return all
}

func walk(t *testing.T, path string, schema object, all map[string]object) {
	t.Helper()
	if schema["description"] == nil {
		t.Errorf("%s: the schema must describe it", path)
	}
	properties, ok := schema["properties"].(object)
	if !ok {
		all[path] = schema
		return
	}
	if schema["additionalProperties"] != false {
		t.Errorf("%s: must refuse unknown values", path)
	}
	for name, property := range properties {
		walk(t, strings.TrimPrefix(path+"."+name, "."), property.(object), all)
	}
}

// TestSchemaBounds checks that every value has a type, and strings, lists, maps and numbers a bound.
func TestSchemaBounds(t *testing.T) {
	bounds := map[string][]string{"string": {"maxLength", "pattern"}, "array": {"maxItems"}, "integer": {"minimum", "maximum"}, "object": {}, "boolean": {}, "null": {}}
	for path, schema := range leaves(t) {
		types, ok := schema["type"].([]any)
		if single, isString := schema["type"].(string); isString {
			types, ok = []any{single}, true
		}
		if !ok && schema["enum"] == nil {
			t.Errorf("%s: must have a type or an enum", path)
		}
		for _, name := range types {
			missing := func(key string) bool { return schema[key] == nil }
			if keys := bounds[name.(string)]; len(keys) > 0 && len(types) == 1 && slices.ContainsFunc(keys, missing) && path != "tls.caBundle" {
				t.Errorf("%s: a %s must have %s", path, name, strings.Join(keys, " and "))
			}
		}
	}
}

// TestSchemaMatchesDefaults checks that values.yaml and the schema have the same values. Amounts of resources may be absent.
func TestSchemaMatchesDefaults(t *testing.T) {
	described := leaves(t)
	delete(described, "global")
	given := map[string]bool{}
	flatten("", loadChart(t).Values, described, given)
	for path := range described {
		if !given[path] && !strings.Contains(path, ".resources.") {
			t.Errorf("values.yaml lacks %s", path)
		}
	}
	for path := range given {
		if described[path] == nil {
			t.Errorf("the schema lacks %s", path)
		}
	}
	t.Logf("%d values", len(given))
}

func flatten(path string, value any, described map[string]object, given map[string]bool) {
	o, ok := value.(object)
	if _, leaf := described[path]; leaf || !ok {
		given[path] = true
		return
	}
	for name, v := range o {
		flatten(strings.TrimPrefix(path+"."+name, "."), v, described, given)
	}
}

// TestDocumentation checks that docs/helm.md has every value in its table, with the description of the schema.
func TestDocumentation(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := leaves(t)
	delete(described, "global")
	var missing []string
	for _, path := range slices.Sorted(maps.Keys(described)) {
		if row := "| `" + path + "` | " + described[path]["description"].(string) + " |"; !strings.Contains(string(content), row) {
			missing = append(missing, row)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/helm.md lacks %d rows:\n%s", len(missing), strings.Join(missing, "\n"))
	}
}
