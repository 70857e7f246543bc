// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// prune takes out of two objects of one type much of what is the same in both, so that the rest can be compared at less
// cost. Both are pointers, and neither is of use for anything else afterwards. It keeps what the difference depends on:
// names of items, and something in each map and list that is not empty, because a patch adds to it and does not replace
// it.
func prune(a, b any) {
	pruneStruct(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

func pruneValue(a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Struct:
		pruneStruct(a, b)
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			pruneStruct(a.Elem(), b.Elem())
		}
	case reflect.Slice:
		pruneSlice(a, b)
	case reflect.Map:
		pruneMap(a, b)
	}
}

// pruneStruct leaves types alone that encode themselves, such as quantities: their fields mean something only together.
func pruneStruct(a, b reflect.Value) {
	if a.Kind() != reflect.Struct || a.Addr().Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return
	}
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		switch {
		case !x.CanSet() || a.Type().Field(i).Name == "Name":
		case equality.Semantic.DeepEqual(x.Interface(), y.Interface()) && isNil(x) == isNil(y):
			x.SetZero()
			y.SetZero()
		default:
			pruneValue(x, y)
		}
	}
}

// pruneSlice prunes items one by one if they have the same names, as the difference compares them. Of other lists, it
// takes out what both end with, but for one item.
func pruneSlice(a, b reflect.Value) {
	if a.Type().Elem().Kind() != reflect.Struct {
		return
	}
	if sameNames(a, b) {
		for i := range a.Len() {
			pruneStruct(a.Index(i), b.Index(i))
		}
		return
	}
	n := 0
	for n+1 < min(a.Len(), b.Len()) && equality.Semantic.DeepEqual(a.Index(a.Len()-1-n).Interface(), b.Index(b.Len()-1-n).Interface()) {
		n++
	}
	a.Set(a.Slice(0, a.Len()-n))
	b.Set(b.Slice(0, b.Len()-n))
}

func sameNames(a, b reflect.Value) bool {
	if field, found := a.Type().Elem().FieldByName("Name"); !found || field.Type.Kind() != reflect.String || a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if name := a.Index(i).FieldByName("Name").String(); name == "" || name != b.Index(i).FieldByName("Name").String() {
			return false
		}
	}
	return true
}

// pruneMap takes out what both maps have, but for the shortest value.
func pruneMap(a, b reflect.Value) {
	if a.Type().Elem().Kind() != reflect.String {
		return
	}
	var same []reflect.Value
	kept := 0
	for entries := a.MapRange(); entries.Next(); {
		key, value := entries.Key(), entries.Value()
		if other := b.MapIndex(key); other.IsValid() && other.String() == value.String() {
			if len(same) > 0 && value.Len() < a.MapIndex(same[kept]).Len() {
				kept = len(same)
			}
			same = append(same, key)
		}
	}
	for i, key := range same {
		if i != kept {
			a.SetMapIndex(key, reflect.Value{})
			b.SetMapIndex(key, reflect.Value{})
		}
	}
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	}
	return false
}
