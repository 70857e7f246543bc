// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// MaxConditions is the largest number of conditions in a status.
const MaxConditions = 100

// size is how many there are of something that is bounded, when it is over its bound.
type size struct {
	count int64
	err   *field.Error
}

// Sizes collects by path and kind what is over its bound. What is below a list that is too long is not looked at.
type Sizes struct {
	over  map[string]size
	order []string
}

// List checks the length of a list, and returns whether it is within the limit.
func (s *Sizes) List(path *field.Path, count, limit int) (within bool) {
	if count <= limit {
		return true
	}
	s.add("", int64(count), field.TooMany(path, count, limit))
	return false
}

// Sum checks a sum over several fields. The format has the limit and the sum.
func (s *Sizes) Sum(path *field.Path, count, limit int64, format string) {
	if count > limit {
		s.add(format, count, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(format, limit, count)))
	}
}

func (s *Sizes) add(kind string, count int64, err *field.Error) {
	if s.over == nil {
		s.over = map[string]size{}
	}
	key := keyOf(err.Field, kind)
	s.over[key] = size{count: count, err: err}
	s.order = append(s.order, key)
}

// found returns whether a list is over its bound.
func (s *Sizes) found(list *field.Path) bool {
	_, found := s.over[keyOf(list.String(), "")]
	return found
}

func keyOf(path, kind string) string { return path + ": " + kind }

// Grown returns what is over its bound and was not as large in the stored object, in the order in which it was found. The
// stored object is measured only if there is something.
func (s *Sizes) Grown(measureStored func() *Sizes) field.ErrorList {
	if len(s.order) == 0 {
		return nil
	}
	stored := measureStored()
	var errs field.ErrorList
	for _, key := range s.order {
		now := s.over[key]
		if was, ok := stored.over[key]; !ok || was.count < now.count {
			errs = append(errs, now.err)
		}
	}
	return errs
}

// Objects counts the items of all lists of objects below a value.
func Objects(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return Objects(v.Elem())
		}
	case reflect.Struct:
		var n int64
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // exported: what is sent
				n += Objects(f)
			}
		}
		return n
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return 0
		}
		n := int64(v.Len())
		for i := range v.Len() {
			n += Objects(v.Index(i))
		}
		return n
	}
	return 0
}

// BytesWithin bounds a text by its size. The error does not repeat it.
func BytesWithin(content string, limit int, path *field.Path) field.ErrorList {
	if len(content) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", limit)}
}

// CharactersWithin bounds a text by its characters. The error does not repeat it.
func CharactersWithin(content string, limit int, path *field.Path) field.ErrorList {
	if utf8.RuneCountInString(content) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(path, "", limit)}
}

// WithoutControls refuses control characters in a text of one line. It could otherwise move the cursor of a terminal,
// change the order in which what follows is read, or look like several lines of a list. The error does not repeat the
// text.
func WithoutControls(content string, path *field.Path) field.ErrorList {
	position, char := text.FirstControl(content)
	if position == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must not contain control characters: character %d is %U",
		position, char))}
}

// LineWithin checks a text of one line, which is bounded by its characters.
func LineWithin(content string, limit int, path *field.Path) field.ErrorList {
	if errs := CharactersWithin(content, limit, path); len(errs) > 0 {
		return errs
	}
	return WithoutControls(content, path)
}
