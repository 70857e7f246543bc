// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
)

func kindOf(name string) string { kind, _, _ := strings.Cut(name, "-"); return kind }

func TestKinds(t *testing.T) {
	t.Setenv(sample.AllVariable, "")
	cases := []string{"kill-1", "stop-1", "kill-2", "stop-2", "pause-1"}
	seen := map[string]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"} {
		t.Setenv(sample.SeedVariable, seed)
		chosen := sample.Kinds(t, cases, kindOf)
		if again := sample.Kinds(t, cases, kindOf); !cmp.Equal(chosen, again) {
			t.Errorf("seed %s chose %q, then %q", seed, chosen, again)
		}
		kinds := map[string]int{}
		for _, name := range chosen {
			kinds[kindOf(name)]++
			seen[name] = true
		}
		if diff := cmp.Diff(map[string]int{"kill": 1, "stop": 1, "pause": 1}, kinds); diff != "" {
			t.Errorf("seed %s: cases of each kind (-want +got):\n%s", seed, diff)
		}
	}
	if len(seen) != len(cases) {
		t.Errorf("twelve seeds chose %d of %d cases", len(seen), len(cases))
	}
}

func TestAllCases(t *testing.T) {
	t.Setenv(sample.AllVariable, "1")
	cases := []string{"kill-1", "kill-2"}
	if diff := cmp.Diff(cases, sample.Kinds(t, cases, kindOf)); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, sample.One(t, map[string]int{"b": 1, "a": 2})); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
