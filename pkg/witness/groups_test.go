// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestCommonGroups(t *testing.T) {
	for name, tc := range map[string]struct{ key, record, want witness.Groups }{
		"neither half has a list":        {},
		"the key has none":               {record: witness.Groups{"a": "1"}},
		"the record has none":            {key: witness.Groups{"a": "1"}, want: witness.Groups{"a": "1"}},
		"the same under two APIServices": {key: witness.Groups{"a": "1", "b": ""}, record: witness.Groups{"a": "2", "b": ""}, want: witness.Groups{"b": ""}},
		"a group that only one half has": {key: witness.Groups{"a": "1", "b": "1"}, record: witness.Groups{"b": "1", "c": "1"}, want: witness.Groups{"b": "1"}},
		"an empty list excludes all":     {key: witness.Groups{}, record: witness.Groups{"a": "1"}, want: witness.Groups{}},
	} {
		if diff := cmp.Diff(tc.want, witness.Common(tc.key, tc.record)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestChangesOfGroups(t *testing.T) {
	none := witness.Groups(nil)
	if got := none.With(nil); !got.Equal(nil) || got.Equal(witness.Groups{}) {
		t.Errorf("no changes of no list: %v", got)
	}
	before := witness.Groups{"a": "1", "b": "1"}
	got := before.With(map[string]*types.UID{"a": nil, "b": ptr.To(types.UID("2")), "c": ptr.To(types.UID(""))})
	if diff := cmp.Diff(witness.Groups{"b": "2", "c": ""}, got); diff != "" || len(before) != 2 || before["b"] != "1" {
		t.Errorf("%v (-want +got):\n%s", before, diff)
	}
}

// TestRefusalsConcernGroups: a refusal without groups is about all.
func TestRefusalsConcernGroups(t *testing.T) {
	var none *witness.Refusal
	some := &witness.Refusal{Groups: []string{"a"}}
	if none.Concerns("a") || !(&witness.Refusal{}).Concerns("a") || !some.Concerns("a") || some.Concerns("b") {
		t.Error("a refusal concerns another group than it names")
	}
}
