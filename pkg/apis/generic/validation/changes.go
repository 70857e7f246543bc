// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation holds what the validation of every kind needs: bounds of lists, tolerance of what is stored already, and
// fields that all kinds have.
package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxChanges is more than an answer can hold.
	maxChanges = 128
	// maxQuoted is how many bytes of a former value a message repeats.
	maxQuoted = 128
)

// changes collects the fields in which two values differ.
type changes struct {
	// explain returns what the user can do about a field.
	explain func(path string) string
	errs    field.ErrorList
}

// Changed returns an error for each field in which two values of one type differ.
func Changed(next, prev any, path *field.Path, explain func(path string) string) field.ErrorList {
	c := &changes{explain: explain}
	c.compare(reflect.ValueOf(next), reflect.ValueOf(prev), path)
	return c.errs
}

func (c *changes) compare(next, prev reflect.Value, path *field.Path) {
	if len(c.errs) >= maxChanges || equality.Semantic.DeepEqual(next.Interface(), prev.Interface()) {
		return
	}
	switch {
	case isScalar(next.Type()):
		c.add(path, next, prev)
	case next.Kind() == reflect.Pointer && !next.IsNil() && !prev.IsNil():
		c.compare(next.Elem(), prev.Elem(), path)
	case next.Kind() == reflect.Struct:
		c.fields(next, prev, path)
	case next.Kind() == reflect.Slice && next.Type().Elem().Kind() == reflect.Struct && next.Len() == prev.Len():
		c.items(next, prev, path)
	case next.Kind() == reflect.Map:
		c.entries(next, prev, path)
	default:
		c.add(path, next, prev)
	}
}

func (c *changes) fields(next, prev reflect.Value, path *field.Path) {
	t := next.Type()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch {
		case name != "":
		case t.Field(i).Type == reflect.TypeFor[metav1.ObjectMeta]():
			name = "metadata"
		case !t.Field(i).Anonymous:
			name = wireName(t.Field(i).Name)
		}
		p := path
		if name != "" {
			p = path.Child(name)
		}
		c.compare(next.Field(i), prev.Field(i), p)
	}
}

// wireName returns how a field of an internal type is called on the wire: TTLSeconds is ttlSeconds.
func wireName(name string) string {
	upper := 0
	for upper < len(name) && unicode.IsUpper(rune(name[upper])) {
		upper++
	}
	if upper > 1 && upper < len(name) {
		upper-- // the last one begins the next word
	}
	return strings.ToLower(name[:upper]) + name[upper:]
}

// items compares lists of one length. Of an item with another name, only the name is reported.
func (c *changes) items(next, prev reflect.Value, path *field.Path) {
	for i := range next.Len() {
		p, a, b := path.Index(i), next.Index(i), prev.Index(i)
		if name := a.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && name.String() != b.FieldByName("Name").String() {
			c.add(p.Child("name"), name, b.FieldByName("Name"))
			continue
		}
		c.compare(a, b, p)
	}
}

func (c *changes) entries(next, prev reflect.Value, path *field.Path) {
	var keys []string
	for _, m := range []reflect.Value{next, prev} {
		for _, key := range m.MapKeys() {
			keys = append(keys, key.String())
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		k := reflect.ValueOf(key).Convert(next.Type().Key())
		a, b := next.MapIndex(k), prev.MapIndex(k)
		if a.IsValid() && b.IsValid() {
			c.compare(a, b, path.Key(key))
		} else {
			c.add(path.Key(key), a, b)
		}
	}
}

// add reports a field: the new value, the former one, and what to do.
func (c *changes) add(path *field.Path, next, prev reflect.Value) {
	if len(c.errs) >= maxChanges {
		return
	}
	var value any = field.OmitValueType{}
	if v, ok := scalar(next); ok {
		value = v
	}
	detail := c.explain(path.String())
	if was := former(next, prev); was != "" {
		detail = was + "; " + detail
	}
	c.errs = append(c.errs, field.Invalid(path, value, detail))
}

// former describes the stored value, as far as it can be said in a few words.
func former(next, prev reflect.Value) string {
	var was string
	switch v, ok := scalar(prev); {
	case isUnset(prev):
		return "was not set"
	case ok:
		was = fmt.Sprintf("was %v", v)
		if s, isText := v.(string); isText {
			was = fmt.Sprintf("was %q", s[:min(len(s), maxQuoted)])
		}
	case isUnset(next):
		was = "was set"
	case prev.Kind() == reflect.Slice && next.Len() != prev.Len():
		return fmt.Sprintf("had %s, now %d", items(prev.Len()), next.Len())
	}
	if isUnset(next) {
		was += ", now is not"
	}
	return was
}

func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

// isUnset returns whether a field is left out. A number or a boolean that is no pointer always has a value.
func isUnset(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64:
		return false
	}
	return v.IsZero()
}

// isScalar returns whether values of a type are printed as a whole.
func isScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString]():
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return true
	}
	return false
}

// scalar returns a value that is set and can be printed.
func scalar(v reflect.Value) (any, bool) {
	for v.IsValid() && v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() || !isScalar(v.Type()) {
		return nil, false
	}
	switch value := v.Interface().(type) {
	case resource.Quantity:
		return value.String(), true
	case intstr.IntOrString:
		return value.String(), true
	case metav1.Time:
		return value.String(), true
	}
	if v.Kind() == reflect.String {
		return v.String(), v.Len() > 0
	}
	return v.Interface(), true
}

const maxManagedByLength = 63

// ValidateManagedBy checks the name of the controller that acts on an object.
func ValidateManagedBy(managedBy *string, path *field.Path) field.ErrorList {
	if managedBy == nil {
		return nil
	}
	if *managedBy == "" {
		return field.ErrorList{field.Required(path, "must not be empty: leave it out for the built-in controller")}
	}
	if len(*managedBy) > maxManagedByLength {
		return field.ErrorList{field.TooLong(path, "", maxManagedByLength)}
	}
	if len(validation.IsDomainPrefixedPath(path, *managedBy)) > 0 {
		return field.ErrorList{field.Invalid(path, *managedBy, "must be a DNS name and a path, such as example.com/controller")}
	}
	return nil
}

// Introduced returns the errors of the new object that the stored one does not have: as many of a kind as there are more
// of it. Errors are of one kind when they differ at most in list indices.
func Introduced(next, stored field.ErrorList) field.ErrorList {
	if len(next) == 0 || len(stored) == 0 {
		return next
	}
	tolerated := make(map[string]int, len(stored))
	for _, err := range stored {
		tolerated[kindOf(err)]++
	}
	var errs field.ErrorList
	for _, err := range next {
		if kind := kindOf(err); tolerated[kind] > 0 {
			tolerated[kind]--
			continue
		}
		errs = append(errs, err)
	}
	return errs
}

// kindOf leaves the digits of list indices out of the path: items may move in a list without getting better or worse.
func kindOf(err *field.Error) string {
	var kind strings.Builder
	inIndex := false
	for _, r := range err.Field {
		switch {
		case r == '[':
			inIndex = true
		case inIndex && r >= '0' && r <= '9':
			continue
		default:
			inIndex = false
		}
		kind.WriteRune(r)
	}
	kind.WriteString(": ")
	kind.WriteString(err.ErrorBody())
	return kind.String()
}
