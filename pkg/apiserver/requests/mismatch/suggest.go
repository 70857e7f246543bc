// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mismatch

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxName is the length of names from which on no similar one is looked for.
	maxName = 64
	// maxTypos is how many characters two similar names may differ in.
	maxTypos = 2
	// maxLevels is how far below its place an unknown field is looked for.
	maxLevels = 5
)

// suggestion says which field the user may have meant: one with a similar name in the same place, or one with the same name
// further down.
func suggestion(t reflect.Type, path *field.Path, name string) string {
	if len(name) > maxName {
		return ""
	}
	best, distance := "", maxTypos+1
	for _, known := range members(t) {
		d := typos(strings.ToLower(known.name), strings.ToLower(name))
		if d < distance && d < len(known.name)/2 {
			best, distance = known.name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if found := below(t, name); found != "" {
		return fmt.Sprintf("; did you mean %q?", child(path, found))
	}
	return ""
}

// place is a type, and the path to it from where the search began.
type place struct {
	t    reflect.Type
	path string
}

// below returns the shortest path to a field of that name, level by level. It looks at each type once.
func below(t reflect.Type, name string) string {
	level, seen := []place{{t: t}}, map[reflect.Type]bool{t: true}
	for range maxLevels {
		var next []place
		for _, here := range level {
			for _, known := range members(here.t) {
				path := here.path + known.name
				if known.name == name {
					return path
				}
				if t, path, ok := object(known.t, path); ok && !seen[t] {
					seen[t] = true
					next = append(next, place{t: t, path: path + "."})
				}
			}
		}
		level = next
	}
	return ""
}

// object returns the struct that a field or its items hold.
func object(t reflect.Type, path string) (reflect.Type, string, bool) {
	for {
		switch {
		case t.Kind() == reflect.Pointer:
			t = t.Elem()
		case t.Kind() == reflect.Slice:
			t, path = t.Elem(), path+"[]"
		default:
			return t, path, t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(unmarshaler)
		}
	}
}

// typos counts the characters that are to be added, removed, replaced or swapped with the next one to make one name of the
// other.
func typos(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differs := 0
			if a[i-1] != b[j-1] {
				differs = 1
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
