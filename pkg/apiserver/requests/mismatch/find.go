// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mismatch names the fields of a body whose values do not have the type of the field. Decoders stop at the first of
// them, and say it in words of Go or without the field. A handler therefore looks for them once a decoder has refused a
// body: it walks through the body and the type side by side, in linear time, and replaces the answer.
package mismatch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// maxValue is how many bytes of a value an answer repeats.
const maxValue = 256

// finder collects what does not fit.
type finder struct {
	strict bool
	errs   field.ErrorList
	fields map[reflect.Type]map[string]reflect.Type
}

// find compares a decoded document of JSON with the type that it is meant for. A null fits everything. Fields that the type
// does not have are reported only under strict validation.
func find(document any, t reflect.Type, path *field.Path, strict bool) field.ErrorList {
	f := &finder{strict: strict, fields: map[reflect.Type]map[string]reflect.Type{}}
	f.value(document, t, path)
	if len(f.errs) <= bounds.MaxCauses {
		return f.errs
	}
	return append(f.errs[:bounds.MaxCauses-1], field.Invalid(field.NewPath("spec"), field.OmitValueType{},
		"and more errors: correct the others first"))
}

func (f *finder) value(v any, t reflect.Type, path *field.Path) {
	if v == nil || len(f.errs) > bounds.MaxCauses {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		f.unmarshaler(v, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		f.object(v, t, path)
	case reflect.Slice:
		f.list(v, t, path)
	case reflect.Map:
		f.pairs(v, t, path)
	default:
		f.scalar(v, t, path)
	}
}

func (f *finder) object(v any, t reflect.Type, path *field.Path) {
	fields, ok := v.(map[string]any)
	if !ok {
		f.refuse(path, v, "must be an object")
		return
	}
	for _, name := range sorted(fields) {
		if member, found := f.lookUp(t, name); found {
			f.value(fields[name], member, child(path, name))
		} else if f.strict && !strings.HasPrefix(name, "$") { // a directive of a strategic merge patch
			unknown := child(path, name)
			f.errs = append(f.errs, field.Forbidden(unknown, fmt.Sprintf("unknown field %q%s", unknown, suggestion(t, path, name))))
		}
	}
}

func (f *finder) list(v any, t reflect.Type, path *field.Path) {
	if t.Elem().Kind() == reflect.Uint8 {
		if text, ok := v.(string); !ok || !isBase64(text) {
			f.refuse(path, v, "must be a string in base64")
		}
		return
	}
	items, ok := v.([]any)
	if !ok {
		detail := "must be a list"
		if text, isText := v.(string); isText && t.Elem().Kind() == reflect.String {
			detail += fmt.Sprintf(", such as [%q]", text)
		}
		f.refuse(path, v, detail)
		return
	}
	for i, item := range items {
		f.value(item, t.Elem(), path.Index(i))
	}
}

func (f *finder) pairs(v any, t reflect.Type, path *field.Path) {
	fields, ok := v.(map[string]any)
	if !ok {
		f.refuse(path, v, "must be a map of keys to values")
		return
	}
	for _, key := range sorted(fields) {
		f.value(fields[key], t.Elem(), path.Key(key))
	}
}

func (f *finder) scalar(v any, t reflect.Type, path *field.Path) {
	switch t.Kind() {
	case reflect.String:
		f.text(v, path)
	case reflect.Bool:
		if _, isBool := v.(bool); !isBool {
			f.refuse(path, v, "must be true or false, without quotes")
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.integer(v, t.Bits(), path)
	case reflect.Float32, reflect.Float64:
		if _, isNumber := v.(json.Number); !isNumber {
			f.refuse(path, v, "must be a number")
		}
	}
}

func (f *finder) text(v any, path *field.Path) {
	switch v.(type) {
	case string:
	case json.Number, bool:
		f.refuse(path, v, fmt.Sprintf(`must be a string: put it in quotes, "%v"`, v))
	default:
		f.refuse(path, v, "must be a string")
	}
}

func (f *finder) integer(v any, bits int, path *field.Path) {
	number, isNumber := v.(json.Number)
	problem := notInteger(number, isNumber, bits)
	if problem == "" {
		return
	}
	if text, isText := v.(string); isText && notInteger(json.Number(text), true, bits) == "" {
		problem = "must be an integer: remove the quotes"
	}
	f.refuse(path, v, problem)
}

// notInteger returns what is wrong with a number for a field of so many bits.
func notInteger(number json.Number, isNumber bool, bits int) string {
	if isNumber {
		_, err := strconv.ParseInt(string(number), 10, bits)
		if err == nil {
			return ""
		}
		if _, err := strconv.ParseFloat(string(number), 64); err == nil && !strings.ContainsAny(string(number), ".eE") {
			return fmt.Sprintf("must be an integer from %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
		}
	}
	return "must be an integer"
}

// refuse reports a value. Only scalars are repeated.
func (f *finder) refuse(path *field.Path, v any, detail string) {
	if path == nil {
		path = field.NewPath("")
	}
	value := v
	switch v := v.(type) {
	case map[string]any:
		value, detail = field.OmitValueType{}, detail+", but was an object"
	case []any:
		value, detail = field.OmitValueType{}, detail+", but was a list"
	case json.Number:
		value = number(v)
	case string:
		value = v[:min(len(v), maxValue)]
	}
	f.errs = append(f.errs, field.TypeInvalid(path, value, detail))
}

// number is printed as a number.
func number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64()
	return f
}

// child is the path of a field. A document has no name.
func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func sorted(fields map[string]any) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lookUp returns the type of the field with a name in JSON.
func (f *finder) lookUp(t reflect.Type, name string) (reflect.Type, bool) {
	known, ok := f.fields[t]
	if !ok {
		known = map[string]reflect.Type{}
		for _, member := range members(t) {
			known[member.name] = member.t
		}
		f.fields[t] = known
	}
	member, found := known[name]
	return member, found
}

// member is a field by its name in JSON.
type member struct {
	name string
	t    reflect.Type
}

// members returns the fields of a struct, also those of embedded ones.
func members(t reflect.Type) []member {
	var out []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			out = append(out, member{name: name, t: f.Type})
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			out = append(out, members(f.Type)...)
		}
	}
	return out
}

func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}

// decode reads a document and keeps numbers as they are written.
func decode(data []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into) == nil
}
