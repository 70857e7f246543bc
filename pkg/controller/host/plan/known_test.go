// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "testing"

func TestUnknownIsNotNone(t *testing.T) {
	for name, tc := range map[string]struct {
		known              Known[int]
		open, none, exists bool
		value              int
	}{
		"the zero value":             {known: Known[int]{}, open: true},
		"what could not be obtained": {known: NotObtained[int]()},
		"no value":                   {known: None[int](), none: true},
		"a value":                    {known: Of(7), exists: true, value: 7},
		"the zero of the type":       {known: Of(0), exists: true},
		"an answer":                  {known: Obtained(7, true), exists: true, value: 7},
		"an answer that failed":      {known: Obtained(7, false)},
		"what exists":                {known: Existing(7, true), exists: true, value: 7},
		"what does not exist":        {known: Existing(7, false), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			value, exists := tc.known.Get()
			if open, none := tc.known.Open(), tc.known.IsNone(); open != tc.open || none != tc.none || exists != tc.exists {
				t.Errorf("open %t, none %t, exists %t", open, none, exists)
			}
			if known := tc.known.IsKnown(); known != (tc.none || tc.exists) {
				t.Errorf("known %t", known)
			}
			if value != tc.value || tc.known.Value() != tc.value {
				t.Errorf("values %d and %d, want %d", value, tc.known.Value(), tc.value)
			}
		})
	}
}
