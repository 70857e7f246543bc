// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

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
