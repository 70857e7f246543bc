// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPublishedKeys checks that templates have the types and the fields that the schema names.
func TestPublishedKeys(t *testing.T) {
	names := func(fields []checkedField) (names []string) {
		for _, f := range fields {
			names = append(names, f.name)
		}
		return names
	}
	for _, r := range published {
		checked := checkedTypes[r.of]
		if checked == nil {
			t.Errorf("no template has a %s", r.of)
			continue
		}
		if diff := cmp.Diff(r.required, names(checked.required)); diff != "" {
			t.Errorf("required keys of %s (-want +got):\n%s", r.of, diff)
		}
		if diff := cmp.Diff(r.unique, names(checked.unique)); diff != "" {
			t.Errorf("keys of lists of %s (-want +got):\n%s", r.of, diff)
		}
	}
}
