// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxItems is the largest number of objects in any list that has no smaller limit of its own. A strategic merge patch and a server-side
// apply look for each item among all that are stored, so that their cost grows with the square of the length. A longer list could be
// created, and then neither be applied nor patched.
const MaxItems = 2_000

// Lists checks the length of each list of objects below a value. Lists that have been found too long already are left out.
func (s *Sizes) Lists(path *field.Path, v reflect.Value) {
	if longest(v) > MaxItems { // paths cost more than counting
		s.lists(path, v)
	}
}

// longest returns the length of the longest list of objects below a value.
func longest(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return longest(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // exported: what is sent
				n = max(n, longest(f))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return 0
		}
		n = v.Len()
		for i := range v.Len() {
			n = max(n, longest(v.Index(i)))
		}
	}
	return n
}

func (s *Sizes) lists(path *field.Path, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			s.lists(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				s.lists(childPath(path, v.Type().Field(i)), f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct || s.found(path) || !s.List(path, v.Len(), MaxItems) {
			return
		}
		for i := range v.Len() {
			s.lists(path.Index(i), v.Index(i))
		}
	}
}

// childPath returns the path of a field. Our types have no JSON names, which begin with a small letter; fields
// whose names begin with an abbreviation are no lists, and hold none.
func childPath(path *field.Path, f reflect.StructField) *field.Path {
	name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name != "":
		return path.Child(name)
	case f.Anonymous || tagged && options == "inline":
		return path
	}
	return path.Child(strings.ToLower(f.Name[:1]) + f.Name[1:])
}
