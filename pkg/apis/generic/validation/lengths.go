// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BytesWithin bounds a text by its size. The error does not repeat it.
func BytesWithin(text string, limit int, path *field.Path) field.ErrorList {
	if len(text) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", limit)}
}

// CharactersWithin bounds a text by its characters. The error does not repeat it.
func CharactersWithin(text string, limit int, path *field.Path) field.ErrorList {
	if utf8.RuneCountInString(text) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(path, "", limit)}
}
