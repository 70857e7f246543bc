// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestLosses(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal witness.Refusal
		want    string
		any     bool
	}{
		"nothing":                   {witness.Refusal{}, "nothing", false},
		"of an older server":        {witness.Refusal{JobsAtStake: 7, Jobs: []string{"n/a", "n/b", "n/c", "n/d", "n/e", "n/f"}, ClaimsAtStake: 1}, "7 Jobs (n/a, n/b, n/c, n/d, n/e and 2 more) and 1 PersistentVolumeClaim", true},
		"unknown":                   {witness.Refusal{JobsAtStake: -1}, "an unknown number of objects", true},
		"StatefulSets alone":        {witness.Refusal{AtStake: []witness.Loss{{Kind: "StatefulSet", Count: 24, Names: []string{"n/a"}}}}, "24 StatefulSets (n/a and 23 more)", true},
		"what can be created again": {witness.Refusal{AtStake: []witness.Loss{{Kind: "Service", Count: 1, Names: []string{"n/a"}}}}, "1 Service (n/a)", true},
		"several, the rest unnamed": {witness.Refusal{AtStake: []witness.Loss{{Kind: "StatefulSet", Count: 1, Names: []string{"n/a"}}, {Kind: "Job", Count: 2}, {Kind: "Service", Count: 3, Names: []string{"n/s"}}}}, "1 StatefulSet (n/a), 2 Jobs and 3 Services", true},
	} {
		if got := tc.refusal.Losses(); got.String() != tc.want || got.Any() != tc.any {
			t.Errorf("%s: %q, any: %t", name, got, got.Any())
		}
	}
}

// TestLossesAreReadByOlderReaders: they know Jobs and claims, each in a field of its own.
func TestLossesAreReadByOlderReaders(t *testing.T) {
	counts := []witness.Loss{
		{Resource: "statefulsets.apps", Kind: "StatefulSet", Count: 24, Names: []string{"n/s"}}, {Resource: "jobs.batch", Kind: "Job", Count: 2, Names: []string{"n/a"}},
		{Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Count: 3},
	}
	var r witness.Refusal
	witness.Losses{Counts: counts}.Record(&r, []string{"n/a", "n/b"})
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	type older struct {
		JobsAtStake, ClaimsAtStake int
		Jobs                       []string
	}
	var got older
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(older{2, 3, []string{"n/a", "n/b"}}, got); diff != "" {
		t.Errorf("what an older reader sees (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counts, r.Losses().Counts); diff != "" {
		t.Errorf("what this version reads (-want +got):\n%s", diff)
	}
	if witness.Losses.Record(witness.Losses{Unknown: true}, &r, nil); r.JobsAtStake != -1 || r.AtStake != nil || !r.Losses().Unknown {
		t.Errorf("unknown: %+v", r)
	}
}
