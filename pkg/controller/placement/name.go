// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"unique"
)

// Name is a string of which equal ones share their memory: names of nodes and sets, label keys and values. It takes 8
// bytes, and the text goes with the last of its names. The zero Name is the empty string.
type Name struct{ handle unique.Handle[string] }

// NameOf returns the name of a text.
func NameOf(text string) Name {
	if text == "" {
		return Name{}
	}
	return Name{unique.Make(text)}
}

func (n Name) String() string {
	if n == (Name{}) {
		return ""
	}
	return n.handle.Value()
}

// MarshalText makes names readable where a snapshot or a result is printed.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

func compareNames(a, b Name) int {
	if a == b {
		return 0
	}
	return cmp.Compare(a.String(), b.String())
}
